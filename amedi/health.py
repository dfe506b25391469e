"""For whoever watches: does the process live, does the product do its work, and how much of it.

/healthz is for a load balancer and asks nobody. /readyz and /metrics say how the
consulting rooms' work goes, and are not for the public.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import wraps
from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.request import split_domain_port
from django.urls import path
from django.utils.cache import patch_cache_control
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from amedi.metrics import Metrics
from reminders import health

View = Callable[[HttpRequest], HttpResponse]
FORWARDED = ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP", "HTTP_X_FORWARDED_")
"""How the headers begin, in WSGI's spelling, by which a proxy shows itself."""


def unkept(view: View) -> View:
    """To be read only, and of this moment: nobody may keep the answer."""

    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        response = view(request)
        patch_cache_control(response, no_store=True)
        return response

    return csrf_exempt(require_safe(answer))


def for_watchers(view: View) -> View:
    """For whoever has the METRICS_TOKEN or, where none is set, is on this machine; 404 for all others."""

    @wraps(view)
    def answer(request: HttpRequest) -> HttpResponse:
        if not (_has_token(request) if settings.METRICS_TOKEN else _is_from_here(request)):
            raise Http404
        return view(request)

    return answer


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    expected = settings.METRICS_TOKEN.encode()
    return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), expected)


def _is_from_here(request: HttpRequest) -> bool:
    """Whether the other end is on this machine, and no proxy that speaks for somebody else."""
    if any(name.startswith(FORWARDED) for name in request.META):
        return False
    # A proxy that shows itself by no header may at least pass on the public name.
    host, _port = split_domain_port(request.get_host())
    if host not in ("localhost", "127.0.0.1", "[::1]"):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False  # a socket file, and who stands behind it is not known
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


@unkept
def healthz(_request: HttpRequest) -> HttpResponse:
    """That the process lives."""
    return HttpResponse("ok\n", content_type="text/plain")


@for_watchers
@unkept
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 while messages go out and answers come in, else 503; each measure with its threshold."""
    found = health.current()
    return JsonResponse(
        found.as_json(),
        status=200 if found.is_ready else 503,
        json_dumps_params={"indent": 2, "ensure_ascii": False},
    )


@for_watchers
@unkept
def metrics(_request: HttpRequest) -> HttpResponse:
    """For Prometheus. 503 without a database, so that no scrape is taken for a silent hour."""
    found = health.current()
    if found.at is None:
        [database] = found.measures
        return HttpResponse(f"{database.sentence}\n", status=503, content_type="text/plain; charset=utf-8")
    text = generate_latest(Metrics(health=found, now=found.at))
    return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


urlpatterns = [path("healthz", healthz), path("readyz", readyz), path("metrics", metrics)]

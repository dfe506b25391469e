from django.apps import AppConfig


class AmediConfig(AppConfig):
    """Composition only: settings, addresses, sandbox and demo. No rule of the domain."""

    name = "amedi"

    def ready(self) -> None:
        """Register the checks."""
        from amedi import checks  # noqa: F401

# Everything runs from this folder, with .venv/ for packages and .local/ for data.
PYTHON3 ?= python3
# By module and never by script: a script's first line breaks on a path with spaces.
PYTHON := .venv/bin/python
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help demo run check test bench

help: ## List what can be made
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
		|| grep -E '^[a-z]+:.*## ' Makefile

demo: $(INSTALLED) ## Show the product at work with invented patients, until Ctrl-C
	@$(PYTHON) manage.py demo

run: $(INSTALLED) ## Run web server, live stream and cluster for development, until Ctrl-C
	@$(PYTHON) manage.py migrate
	@$(PYTHON) manage.py setup_schedules
	@export ROOM_STREAM_URL=$${ROOM_STREAM_URL:-http://127.0.0.1:8001}; \
		$(PYTHON) manage.py qcluster & cluster=$$!; \
		$(PYTHON) -m uvicorn amedi.asgi:application --port 8001 --timeout-graceful-shutdown 2 --log-level warning & stream=$$!; \
		$(PYTHON) manage.py runserver & web=$$!; \
		trap 'kill $$web $$stream; echo "Ending: a tick that is under way is finished first."' INT TERM; \
		wait $$web || wait $$web || true; kill $$stream 2>/dev/null; kill $$cluster; wait $$cluster

check: $(INSTALLED) ## Format, lint, types, import contracts, migrations, settings
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	$(PYTHON) -m tests.manage makemigrations --check --dry-run
	$(PYTHON) -m tests.manage check

test: check ## Everything of check, and all tests, on a private database server
	@for browser in chromium chromium-browser google-chrome; do command -v $$browser >/dev/null && exit 0; done; \
		echo "No Chromium here: the tests of the screens are skipped. To run them: apt-get install --no-install-recommends chromium"
	$(PYTHON) -m pytest -n 2 --dist loadfile

bench: $(INSTALLED) ## Measure speed, and crashes, for an hour; one: make bench NAME=claim; small: QUICK=1
	@failed=0; for name in $(or $(NAME),dispatch claim webhook plan crash $(if $(QUICK),,rooms http_clients year)); do \
		$(PYTHON) -m bench.$$name $(if $(QUICK),--quick) || failed=1; echo; done; exit $$failed

# Installed again whenever the lists of packages change.
$(INSTALLED): requirements.txt requirements-dev.txt
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Amedi reminders needs Python 3.11 or newer as python3, or as make PYTHON3=python3.12" >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || $(PYTHON3) -m venv --clear .venv
	@echo "Installing packages into .venv (once, half a minute or so)"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore -r requirements-dev.txt
	@touch $@

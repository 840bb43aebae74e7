"""Settings that hold for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Examples of a property that are drawn: `daily` in `make test`, `ci` in `make test-slow`, `long` in `make test-long`.
# There are no deadlines, because machines are shared. Fixtures are not renewed between examples: they only switch
# between ways of computing.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
settings.register_profile("daily", _COMMON, max_examples=30)
settings.register_profile("ci", _COMMON, max_examples=100)
settings.register_profile("long", _COMMON, max_examples=500)
settings.load_profile("daily")

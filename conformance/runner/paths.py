"""Where the parts of the kit stand."""

from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
ROOT = KIT.parent

ENTRY = KIT / "conformance"
CASES = KIT / "cases"
PROFILES = KIT / "profiles"
KIT_SCHEMAS = KIT / "schemas"
SPEC_SCHEMAS = ROOT / "spec" / "schemas"
RULES = ROOT / "spec" / "rules"

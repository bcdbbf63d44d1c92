"""One case told in full: the rules, what each step asked, what was expected, and what was observed."""

from collections.abc import Iterable, Mapping

from runner.model import Case, Outcome, Rule, Status

_VERDICTS = {
    Status.PASSED: "holds",
    Status.FAILED: "VIOLATED",
    Status.ERROR: "no verdict: the kit could not decide it",
    Status.SKIPPED: "not tried",
    Status.INTERRUPTED: "no verdict: interrupted",
}


def tell(case: Case, rules: Mapping[str, Rule], outcome: Outcome) -> str:
    lines = [f"{name} ({rules[name].level}): {rules[name].text}" for name in case.rules]
    lines += [f"case {case.id}: {case.title}", ""]
    for step in outcome.seen:
        lines += [f"{step.where}: {step.asked}"]
        lines += [f"  expected  {step.expected}", f"  observed  {step.observed}"]
    lines += [f"not as it must be: {failure}" for failure in outcome.failures]
    if outcome.reason:
        lines += [outcome.reason]
    if outcome.failures and outcome.stderr:
        lines += ["the driver said:", outcome.stderr.rstrip()]
    return "\n".join([*lines, f"{case.id}: {_VERDICTS[outcome.status]}"])


def all_hold(outcomes: Iterable[Outcome]) -> bool:
    return all(outcome.status is Status.PASSED for outcome in outcomes)

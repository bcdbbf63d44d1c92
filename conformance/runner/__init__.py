"""The runner of the conformance kit: cases in, verdicts and reports out."""

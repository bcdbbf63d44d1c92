"""A process that makes sandboxes for a while: what it takes must not grow."""

from suite.stage import Stage

# A kilobyte in a hundred rounds would be ten megabytes in a million.
_MOST_BYTES_PER_ROUND = 100.0
# What one page more or less makes of the slope over a short run.
_NOISE_KIB = 256.0


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line that is nearest to the points, by least squares."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def soak(stage: Stage) -> None:
    """Throughput, and the slope of memory, descriptors and threads over the second half."""
    seconds = 300 if stage.full else 12
    with stage.step(f"{seconds} seconds", seconds + 20):
        ran = stage.run(stage.program("soak"), str(seconds), longest_s=seconds + 60.0)
    stage.equal("its exit code", ran.status, 0)
    lines = [tuple(map(float, line.split())) for line in ran.text.splitlines()]
    stage.check(len(lines) >= seconds // 2, f"it told only {len(lines)} times")
    half = lines[len(lines) // 2 :]
    rounds = half[-1][0] - half[0][0]
    grown = slope([(line[0], line[1]) for line in half]) * rounds
    most = _NOISE_KIB + _MOST_BYTES_PER_ROUND * rounds / 1024
    stage.notes.append(f"{lines[-1][0] / seconds:.0f} rounds a second, {grown:+.0f} KiB in {rounds:.0f}")
    stage.check(grown <= most, f"memory grew by {grown:.0f} KiB in {rounds:.0f} rounds")
    for column, what in ((2, "descriptors"), (3, "threads")):
        seen = {line[column] for line in half}
        stage.check(max(seen) - min(seen) <= 2, f"{what} went from {min(seen)} to {max(seen)}")

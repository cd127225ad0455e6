"""Write docs/conformance.md: every model type against the golden facts.

python tools/conformance.py > docs/conformance.md
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.families import conformance as c
from tests.families.test_conformance import NO_CACHE, uncached

HEAD = """\
# Conformance: every model type against the framework's own classes
Each row is one class of transformers 5.24.0, built from its type's default configuration on the
meta device and counted (`tests/golden/types.jsonl`). Made by `python tools/conformance.py`; the
same comparisons are tests (`tests/families/test_conformance.py`), over these rows, {released}
released configurations read from the keys that the release wrote, and {varied} with shape-changing
keys changed.

| | exact | of |
|---|---|---|
| parameters, default configurations | {params} | {n} |
| tensors, by shape and number | {tensors} | {n} |
| FLOPs, equal at every length that has a fact | {flops} | {with_flops} |
| FLOPs, equal once the cause below is added, to the last one | {explained} | {with_flops} |
| FLOPs, short of exact | {short} | {with_flops} |
| cache by layer and kind, of what generates | {caches} | {generating} |
| parameters, released configurations | {released_params} | {released} |
| tensors, released configurations | {released_tensors} | {released} |
| parameters and tensors, varied configurations | {varied_exact} | {varied} |
| parameters and tensors, random changes of defaults | {changed_exact} | {changed} |

FLOPs are those of one sequence over all pairs, top-k experts, a multiply-add counted as 2. Where
the class computes something else, this package keeps its convention (a recurrence as the ideal
recurrence, a window as its window) and the cause gives the difference in closed form.

| type | class | parameters | tensors | FLOPs | cache |
|---|---|---|---|---|---|"""


def main() -> None:
    """Print the page."""
    lines, causes = [], {}
    keys = "params tensors flops explained short with_flops caches generating"
    tally = dict.fromkeys(keys.split(), 0)
    for row in c.rows("types"):
        model, name = c.model_of(row), (row["model_type"], row["arch"])
        exact = model.params.total == row["params"]
        same = c.shapes_of(model) == c.golden_shapes(row)
        work = c.work_of(row, model)
        if not work:
            flops = "no fact"
        elif all(w.exact for w in work):
            flops = "exact"
        elif all(w.accounted for w in work):
            flops = "explained"
        else:
            flops = "short"
        if flops in ("explained", "short"):
            cause = next((w.cause for w in work if w.cause), None)
            causes[name] = cause.why if cause else "unknown"
        kinds = [kind.kind for kind in model.memory.cache_by_kind(1024)]
        cache = ", ".join(kinds) or "none"
        tally["params"] += exact
        tally["tensors"] += same
        tally["with_flops"] += bool(work)
        if flops == "exact":
            tally["flops"] += 1
        elif flops in tally:
            tally[flops] += 1
        if not uncached(row, model):
            tally["generating"] += 1
            tally["caches"] += bool(kinds)
        elif row["model_type"] in NO_CACHE:
            cache = NO_CACHE[row["model_type"]]
        shown = f"{model.params.total:,}" if exact else f"{model.params.total:,}, off"
        cells = (*name, shown, "exact" if same else "differ", flops, cache)
        lines.append(f"| {' | '.join(cells)} |")
    released, varied = c.rows("configs"), c.rows("varied")
    changed = c.rows("changed")
    facts = tally | {
        "changed": len(changed),
        "changed_exact": sum(c.digest(c.shapes_of(c.model_of(r))) == r["shapes"] for r in changed),
        "n": len(c.rows("types")),
        "released": len(released),
        "varied": len(varied),
        "released_params": sum(
            c.model_of(r).params.total == c.published_params(r) for r in released
        ),
        "released_tensors": sum(c.shapes_of(c.model_of(r)) == c.golden_shapes(r) for r in released),
        "varied_exact": sum(c.shapes_of(c.model_of(r)) == c.golden_shapes(r) for r in varied),
    }
    print(HEAD.format(**facts))
    print("\n".join(lines))
    print("\n## Why the framework's FLOPs differ\n| type | class | cause |\n|---|---|---|")
    for (kind, arch), why in causes.items():
        print(f"| {kind} | {arch} | {why} |")


if __name__ == "__main__":
    main()

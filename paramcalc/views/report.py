"""The report on one model: sections for a person, a record for a machine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from paramcalc.deploy import formats
from paramcalc.ledger import Tensor
from paramcalc.model import Model
from paramcalc.quantities import params, shape
from paramcalc.quantities.catalogue import CATALOGUE, At, evaluate
from paramcalc.quantities.components import Part, parts
from paramcalc.views.tables import Bar, Cell, Section, Share, Size


class Report:
    """A model at a context and batch, and the preset it was changed from, if it was."""

    def __init__(self, model: Model, base: Model | None, batch: int, kv_dtype: str) -> None:
        self.model = model
        self.base = base
        self.kv_dtype = formats.find(kv_dtype)
        self.at = At(model.context, batch, self.kv_dtype.bits)
        self.values = evaluate(model.ledger, self.at)
        self.before = (
            evaluate(base.ledger, At(base.context, batch, self.kv_dtype.bits)) if base else {}
        )

    @property
    def assumed_context(self) -> bool:
        """Whether the context is a default and not the model's or the user's."""
        return self.model.spec.context is None

    def sections(self) -> list[Section]:
        """Return the tables of the report."""
        found = [self._parameters(), self._compute(), self._memory(), self._shape(), self._thumb()]
        return [section for section in found if section.rows]

    def headline(self) -> str:
        """Return the line a reader looks for first."""
        total, active = self.values["params"], self.values["active_params"]
        text = f"{self.model.name}  {total:,} parameters"
        if active != total:
            text += f", {active:,} active"
        if self.base and total is not None:
            text += f"  ({total - self.base.params.total:+,})"
        return text

    def summary(self) -> str:
        """Return the shape in one line."""
        spec = self.model.spec
        ffn = f"d_ff {spec.d_ff:,}" if spec.d_ff else ""
        words = [
            f"{spec.n_layers:,} layers",
            f"d_model {spec.d_model:,}",
            f"{spec.n_heads:,} heads"
            + (f" ({spec.n_kv_heads:,} KV)" if spec.n_kv_heads is not None else "")
            + (" MLA" if spec.mla else ""),
            ffn,
            f"{spec.n_experts:,} experts, top {spec.top_k}" if spec.n_experts else "",
            f"vocab {spec.vocab_size:,}",
            f"context {self.at.n:,}" + (" (assumed)" if self.assumed_context else ""),
            "tied" if spec.tie_embeddings else "untied",
        ]
        return " · ".join(word for word in words if word)

    def _change(self, key: str) -> Cell:
        now, then = self.values[key], self.before.get(key)
        if self.base is None or now is None or then is None or now == then:
            return None
        return f"{now - then:+,}"

    def _parameters(self) -> Section:
        section = Section("Parameters", [
            ("", "left"), ("one layer", "right"), ("×", "right"), ("parameters", "right"),
            *([("change", "right")] if self.base else [("share", "right"), ("bar", "left")]),
        ])
        total = self.model.params.total
        before = {p.name: p for p in parts(self.base.ledger)} if self.base else {}
        seen: set[str] = set()
        for part in parts(self.model.ledger):
            tail: tuple[Cell, ...]
            if self.base:
                was = before.get(part.name) if part.name not in seen else None
                seen.add(part.name)
                tail = (_moved(part, was, part.name in before),)
            else:
                share = Fraction(part.params, total)
                tail = (Share(share), Bar(share) if part.kind == "part" else None)
            section.add(part.name, part.one_layer, part.n_layers, part.params, *tail,
                        strong=part.kind != "part")
        tied = params.tied(self.model.ledger)
        if tied:
            section.notes.append(f"tied head: untied it would add {tied:,}")
        if self.values["buffers"]:
            stored = total + (self.values["buffers"] or 0)
            section.notes.append(
                f"with the {self.values['buffers']:,} routing-correction values that the release"
                f" stores: {stored:,}"
            )
        section.notes += self._layer_changes() + self._published()
        return section

    def _layer_changes(self) -> list[str]:
        """Say how one layer changed, where both models have the same kinds of layers."""
        if self.base is None:
            return []
        pairs = list(zip(self.base.params.by_kind, self.model.params.by_kind, strict=False))
        if [a.name for a, _ in pairs] != [b.name for _, b in pairs]:
            return []
        return [
            f"a {now.name} layer: {was.params:,} → {now.params:,} ({now.params - was.params:+,})"
            for was, now in pairs
            if was.params != now.params
        ]

    def _published(self) -> list[str]:
        about = self.model.spec.about
        if about is None or self.base or about.published is None:
            return []
        text = about.published if isinstance(about.published, str) else f"{about.published:,}"
        if isinstance(about.published, int):
            gap = self.model.params.total - about.published
            text += ", equal" if gap == 0 else f", {gap:+,} here"
        lines = [f"published: {text} ({about.where})"]
        return lines + ([about.note] if about.note else [])

    def _compute(self) -> Section:
        section = Section(f"FLOPs at context {self.at.n:,}", self._columns("FLOPs"))
        self._row(section, "matmul_flops_per_token", "one token: matmuls")
        if self.values["router_flops_per_token"]:
            self._row(section, "router_flops_per_token", "  of which routers")
        self._row(section, "attention_flops_per_token", "one token: attention")
        self._row(section, "flops_per_token", "one token: forward", strong=True)
        self._row(section, "prefill_flops", f"prefill of {self.at.n:,} tokens, causal sum")
        self._row(section, "prefill_flops_all_pairs", "  the same over all pairs")
        self._row(section, "training_flops", "training on them, 3 × forward")
        self._row(section, "training_flops_6n", "  6 N per token, N active")
        cross = self.values["attention_equals_matmuls_at"]
        section.add("attention equals matmuls at n",
                    "never: windows bound it" if cross is None else cross,
                    *([self._change("attention_equals_matmuls_at")] if self.base else []))
        section.notes.append("a multiply-add is 2; head in, lookups out; exact")
        return section

    def _memory(self) -> Section:
        section = Section("Memory", self._columns("GB and GiB"))
        for name, fmt in formats.FORMATS.items():
            self._row(section, f"weight_bytes_{name}", f"weights {name}{fmt.mark}")
        if self.model.ledger.caches:
            kv = self.kv_dtype.name
            self._row(section, "kv_bytes_per_token", f"KV cache {kv}, the first token")
            if self.values["kv_bytes_next_token"] != self.values["kv_bytes_per_token"]:
                self._row(section, "kv_bytes_next_token", f"  the token after {self.at.n:,}")
            batch = f" × {self.at.batch:,}" if self.at.batch != 1 else ""
            self._row(section, "kv_bytes", f"KV cache {kv}, {self.at.n:,} tokens{batch}")
        section.notes += formats.NOTES
        return section

    def _columns(self, heading: str) -> list[tuple[str, str]]:
        return [("", "left"), (heading, "right"),
                *([("change", "right")] if self.base else [])]

    def _row(self, section: Section, key: str, label: str, *, strong: bool = False) -> None:
        value = self.values[key]
        shown: Cell = value
        change = self._change(key)
        if CATALOGUE[key].unit == "bytes" and value is not None:
            shown = Size(value)
        section.add(label, shown, *([change] if self.base else []), strong=strong)

    def _shape(self) -> Section:
        section = Section("Shape of a layer", [
            ("", "left"), ("FFN share", "right"), ("neurons/d", "right"), ("heads", "right"),
            ("heads·d_h/d", "right"), ("rank QK", "right"), ("rank OV", "right"),
        ])
        for r in shape.ratios(self.model.plan, self.model.ledger):
            section.add(r.name, Share(r.ffn_share), _ratio(r.neurons_per_width), r.n_heads,
                        _ratio(r.heads_per_width), r.qk_rank, r.ov_rank)
        return section

    def _thumb(self) -> Section:
        section = Section("Rules of thumb", [
            ("", "left"), ("rule", "right"), ("exact", "right"), ("error", "right"),
        ])
        for r in shape.rules_of_thumb(self.model.plan, self.model.ledger, self.at.n):
            section.add(f"{r.name}: {r.of}", r.gives, r.exact, Share(r.error, signed=True))
        return section

    def record(self) -> dict[str, Any]:
        """Return the report for a machine: raw integers, full names."""
        model = self.model
        return {
            "model": model.name,
            "spec": model.spec.model_dump(exclude_none=True, exclude={"about"}, mode="json"),
            "about": model.spec.about.model_dump(mode="json") if model.spec.about else None,
            "context": self.at.n,
            "batch": self.at.batch,
            "kv_dtype": self.kv_dtype.name,
            "quantities": self.values,
            "known": self.known(),
            "change": {key: self.values[key] - was for key, was in self.before.items()  # type: ignore[operator]
                       if self.values[key] is not None and was is not None},
            "params_by_component": dict(model.params.by_component),
            "params_by_part": [p._asdict() for p in parts(model.ledger) if p.kind == "part"],
            "layers": [
                {"stack": stack, "layer": number, "params": count}
                for stack, number, count in model.params.by_layer
            ],
            "shape": [
                {k: float(v) if isinstance(v, Fraction) else v for k, v in r._asdict().items()}
                for r in shape.ratios(model.plan, model.ledger)
            ],
            "rules_of_thumb": [
                {**r._asdict(), "error": float(r.error)}
                for r in shape.rules_of_thumb(model.plan, model.ledger, self.at.n)
            ],
            "tensors": [tensor_record(t) for t in model.ledger.tensors],
        }

    def known(self) -> dict[str, str]:
        """Return how each quantity is known; what rests on a default context is assumed."""
        rests = {"attention_flops_per_token", "flops_per_token", "prefill_flops", "kv_bytes",
                 "prefill_flops_all_pairs", "training_flops", "training_flops_6n",
                 "kv_bytes_next_token"}
        return {
            key: "assumed" if self.assumed_context and key in rests else quantity.known
            for key, quantity in CATALOGUE.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the report as flat rows for CSV: one a quantity, then one a component."""
        known = self.known()
        flat = [
            {"model": self.model.name, "quantity": key, "value": self.values[key],
             "unit": CATALOGUE[key].unit, "known": known[key]}
            for key in CATALOGUE
        ]
        flat += [
            {"model": self.model.name, "quantity": f"params_{role}", "value": count,
             "unit": "parameters", "known": "exact"}
            for role, count in self.model.params.by_component.items()
        ]
        return flat


def ledger_section(model: Model) -> Section:
    """Return the ledger itself as a table: one row a tensor."""
    section = Section("Tensors", [
        ("", "left"), ("shape", "right"), ("copies", "right"), ("parameters", "right"),
        ("use", "left"),
    ])
    for t in model.ledger.tensors:
        shape_text = " × ".join(str(size) for size in t.shape)
        section.add(t.name, shape_text, t.copies, t.params, "tied" if params.is_tied(t) else t.use)
    section.add("total", None, None, model.params.total, None, strong=True)
    return section


def tensor_record(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor's row for a machine."""
    return {
        "name": tensor.name, "role": tensor.role, "shape": list(tensor.shape),
        "copies": tensor.copies, "active": tensor.active, "runs": tensor.runs,
        "use": tensor.use, "shard": tensor.shard, "params": tensor.params,
        "active_params": tensor.active_params, "flops_per_token": tensor.flops,
    }


def _ratio(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.2f}"


def _moved(part: Part, was: Part | None, known: bool) -> Cell:
    """The change of a part against the preset; kinds of layers that share a name show none."""
    if was is None:
        return None if known else f"{part.params:+,}"
    change = part.params - was.params
    return f"{change:+,}" if change else None

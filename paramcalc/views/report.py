"""The report on one model for a person: its tables."""

from __future__ import annotations

from fractions import Fraction

from paramcalc import formats
from paramcalc.quantities import params, shape
from paramcalc.quantities.catalogue import CATALOGUE
from paramcalc.quantities.components import Part, moves, parts
from paramcalc.sight import State
from paramcalc.views.answers import Answers
from paramcalc.views.tables import Bar, Cell, Change, Section, Share, Size


class Report(Answers):
    """The same answers as tables for a person."""

    @property
    def _reshaped(self) -> bool:
        """Whether overrides changed a tensor, and not only the context."""
        return self.base is not None and self.base.ledger.rows != self.model.ledger.rows

    @property
    def _context_known(self) -> str:
        return (
            "a context assumed" if self.assumed_context and not self.model.assumed else self._sure
        )

    @property
    def _sure(self) -> str:
        """How counts from the ledger are known."""
        return "assumed" if self.model.assumed else "exact"

    @property
    def _decodes(self) -> bool:
        return self.model.spec.causal and self.model.spec.encoder is None

    def sections(self) -> list[Section]:
        """Return the tables of the report."""
        found = [
            self._parameters(),
            self._compute(),
            self._memory(),
            self._cache(),
            self._shape(),
            self._thumb(),
        ]
        return [section for section in found if section.rows]

    def _change(self, key: str) -> Cell:
        change = self.change(key)
        return None if change is None else Change(change)

    def _parameters(self) -> Section:
        section = Section(
            f"Parameters, {self._sure}",
            [
                ("", "left"),
                ("one layer", "right"),
                ("×", "right"),
                ("parameters", "right"),
                *(
                    [("change", "right")]
                    if self._reshaped
                    else [("share", "right"), ("bar", "left")]
                ),
            ],
        )
        total = self.model.params.total
        lines = parts(self.model.ledger)
        if self._reshaped:
            assert self.base is not None
            for part, change in moves(lines, parts(self.base.ledger)):
                moved = Change(change) if change else None
                section.add(*_cells(part), moved, strong=part.kind not in ("part", "title"))
        else:
            for part in lines:
                share = Fraction(part.params, total)
                tail = (Share(share), Bar(share) if part.kind == "part" else None)
                section.add(
                    *_cells(part),
                    *(tail if part.kind != "title" else ()),
                    strong=part.kind not in ("part", "title"),
                )
        tied = params.tied(self.model.ledger)
        if tied:
            section.notes.append(f"tied head: untied it would add {tied:,}")
        if self.values["buffers"]:
            stored = total + (self.values["buffers"] or 0)
            section.notes.append(
                f"with {self.values['buffers']:,} stored routing-correction values: {stored:,}"
            )
        section.notes += self._beside() + self._layer_changes() + self._published()
        return section

    def _beside(self) -> list[str]:
        """Say what the count holds beside the text model, and what a checkpoint has beside it."""
        found = []
        if unused := params.idle(self.model.ledger):
            found.append(f"of which no token uses: {unused:,} ({self._idle()})")
        if self.model.params.towers:
            found.append(f"of which towers of other modalities: {self.model.params.towers:,}")
        if self.model.params.mtp:
            found.append(
                f"beside it, multi-token prediction: {self.model.params.mtp:,} (--mtp counts it)"
            )
        return found

    def _idle(self) -> str:
        """What the tensors are that no token uses."""
        names = [t.name for t in self.model.ledger.tensors if t.params and not t.active]
        if any("cross_attention" in name for name in names):
            return "cross attention, where there is no encoder"
        plain = (name.removesuffix(".bias").removesuffix(".weight") for name in names)
        return ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in plain))

    def _layer_changes(self) -> list[str]:
        """Say how one layer changed, where both models have the same kinds of layers."""
        if self.base is None:
            return []
        pairs = list(zip(self.base.params.by_kind, self.model.params.by_kind, strict=False))
        if [a.name for a, _ in pairs] != [b.name for _, b in pairs]:
            return []
        return [
            f"one {now.name} layer: {was.params:,} → {now.params:,} ({now.params - was.params:+,})"
            for was, now in pairs
            if was.params != now.params
        ]

    def _published(self) -> list[str]:
        about = self.model.spec.about
        if about is None or self._reshaped or about.published is None:
            return []
        text = about.published if isinstance(about.published, str) else f"{about.published:,}"
        if isinstance(about.published, int):
            gap = self.model.params.total - about.published
            text += ", equal" if gap == 0 else f", {gap:+,} here"
        lines = [f"published: {text} ({about.where})"]
        return lines + ([about.note] if about.note else [])

    def _compute(self) -> Section:
        section = Section(
            f"FLOPs at context {self.at.n:,}, {self._context_known}", self._columns("FLOPs")
        )
        self._row(section, "matmul_flops_per_token", "one token: matmuls")
        if self.values["router_flops_per_token"]:
            self._row(section, "router_flops_per_token", "  of which routers")
        states = any(isinstance(o.sight, State) for o in self.model.ledger.operations)
        attends = any(not isinstance(o.sight, State) for o in self.model.ledger.operations)
        mixes = ["attention"] * attends + ["states"] * states
        if mixes:
            label = f"one token: {', '.join(mixes)}"
            self._row(section, "attention_flops_per_token", label)
        self._row(section, "flops_per_token", "one token: forward", strong=True)
        whole = "prefill" if self._decodes else "a sequence"
        causal = ", causal sum" if self._decodes and attends else ""
        self._row(section, "prefill_flops", whole + causal)
        if attends:
            self._row(section, "prefill_flops_all_pairs", f"{whole}, all pairs")
        self._row(section, "training_flops", "training, 3 × forward")
        self._row(section, "training_flops_6n", "training, 6 N n")
        if attends:
            cross = self.values["attention_equals_matmuls_at"]
            section.add(
                "attention = matmuls at n",
                "never" if cross is None else cross,
                *([self._change("attention_equals_matmuls_at")] if self.base else []),
            )
        if self._decodes and attends:
            self._row(section, "causal_links", "causal links a layer")
        section.notes.append("a multiply-add is 2 FLOPs; the head counts, lookups do not")
        if self.model.spec.encoder is not None:
            section.notes.append("one token is one source and one target token")
        else:
            section.notes.append(f"one token: the one at position {self.at.n:,}")
        if self.model.spec.mla is not None:
            section.notes.append("latent attention expanded to heads, as in training and prefill")
        return section

    def _memory(self) -> Section:
        section = Section(
            f"Memory, {'assumed' if self.model.assumed else 'derived'}",
            self._columns("GB and GiB", ", bytes"),
        )
        for name, fmt in formats.FORMATS.items():
            self._row(section, f"weight_bytes_{name}", f"weights {name}{fmt.mark}")
        batch = f" × {self.at.batch:,}" if self.at.batch != 1 else ""
        kv, kinds = self.kv_dtype.name, {cache.kind for cache in self.model.ledger.caches}
        if kinds == {"state"}:
            self._row(section, "kv_bytes", f"state {kv}, at any length{batch}")
        elif kinds:
            what = "KV cache and state" if "state" in kinds else "KV cache"
            self._row(section, "kv_bytes_per_token", f"{what} {kv}, the first token")
            if self.values["kv_bytes_next_token"] != self.values["kv_bytes_per_token"]:
                self._row(section, "kv_bytes_next_token", f"  the token after {self.at.n:,}")
            self._row(section, "kv_bytes", f"{what} {kv}, {self.at.n:,} tokens{batch}")
        section.notes += formats.NOTES
        if self.model.spec.encoder is not None and self.model.ledger.caches:
            section.notes.append("KV: cross attention's too, for as many source as target tokens")
        return section

    def _cache(self) -> Section:
        """The cache by kind, where it is not one that grows with every token."""
        section = Section(
            f"Cache by kind, elements, {self._context_known}",
            [
                ("", "left"),
                ("layers", "right"),
                ("first token", "right"),
                ("next", "right"),
                (f"{self.at.n:,} tokens", "right"),
                (self.kv_dtype.name, "right"),
            ],
        )
        kinds = self.model.memory.cache_by_kind(self.at.n)
        if [row.kind for row in kinds] in ([], ["full"]):
            return section
        for row in kinds:
            size = Size(row.elements * self.kv_dtype.bits // 8, brief=True)
            section.add(row.kind, row.layers, row.first, row.following, row.elements, size)
        section.notes.append(f"next: what the token after {self.at.n:,} adds")
        return section

    def _columns(self, heading: str, unit: str = "") -> list[tuple[str, str]]:
        change = [(f"change{unit}", "right")] if self.base else []
        return [("", "left"), (heading, "right"), *change]

    def _row(self, section: Section, key: str, label: str, *, strong: bool = False) -> None:
        value = self.values[key]
        shown: Cell = value
        change = self._change(key)
        if CATALOGUE[key].unit == "bytes" and value is not None:
            shown = Size(value)
        section.add(label, shown, *([change] if self.base else []), strong=strong)

    def _shape(self) -> Section:
        section = Section(
            "Matrices and ranks of a layer",
            [
                ("", "left"),
                ("attention", "right"),
                ("FFN", "right"),
                ("FFN %", "right"),
                ("d_ff/d", "right"),
                ("H·d_h/d", "right"),
                ("QK, OV", "right"),
            ],
        )
        for r in shape.ratios(self.model.plan, self.model.ledger):
            section.add(
                r.name,
                r.attention,
                r.ffn,
                Share(r.ffn_share),
                _ratio(r.neurons_per_width),
                _ratio(r.heads_per_width),
                f"{r.qk_rank}, {r.ov_rank}",
            )
        section.notes.append("biases left out, all experts in; d_ff/d: active neurons a channel")
        section.notes.append("QK, OV: the largest rank of one head's d × d maps")
        return section

    def _thumb(self) -> Section:
        section = Section(
            "Rules of thumb",
            [
                ("", "left"),
                ("rule", "right"),
                ("exact", "right"),
                ("error", "right"),
            ],
        )
        model = self.model
        for r in shape.rules_of_thumb(model.spec.d_model, model.plan, model.ledger, self.at.n):
            section.add(r.name, r.gives, r.exact, Share(r.error, signed=True))
        section.notes.append(
            "12 L d² for parameters outside embedding and head; 2 N n and 6 N n for"
        )
        section.notes.append("forward and training FLOPs of n tokens (causal), N active parameters")
        return section


def _ratio(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.2f}"


def _cells(part: Part) -> tuple[Cell, ...]:
    if part.kind == "title":
        return (part.name,)
    indent = "  " if part.group and part.kind == "part" else ""
    return indent + part.name, part.one_layer, part.n_layers, part.params

"""Config: a config.json as a family reads it, with each type's defaults and a record of what was
read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from paramcalc import rules
from paramcalc.errors import ConfigError
from paramcalc.families.inert import matters
from paramcalc.families.stacks import Layers
from paramcalc.spelling import shown

ALIASES: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "d_model", "n_embed"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "max_position_embeddings": ("n_positions", "n_ctx", "max_seq_len", "max_sequence_length"),
    "intermediate_size": ("n_inner", "ffn_dim", "d_ff"),
}
"""Older spellings, tried in turn where the first name is absent. A family may state its own."""

CARD = {
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "d_ff": "intermediate_size",
    "vocab_size": "vocab_size",
    "context": "max_position_embeddings",
    "tie_embeddings": "tie_word_embeddings",
}
"""Fields of the card and the keys that most types write them under."""

NEEDED = frozenset(
    [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "num_experts",
        "moe_intermediate_size",
        "n_routed_experts",
        "num_local_experts",
        "num_experts_per_tok",
        "first_k_dense_replace",
    ]
)
"""Sizes that are never null where the type has a default for them."""


class LengthError(ConfigError):
    """A list with one entry a layer is longer or shorter than there are layers."""

    def __init__(self, where: str, key: str, entries: int, n: int) -> None:
        self.key, self.n = key, n
        self.what = f"{where}{key} = {entries} entries: there are {n} layers"
        super().__init__(f"{self.what}; make them equal")


_MISSING: Any = object()


class Config:
    """The values of a config.json by key.

    An attribute is the file's value, else that of an older spelling, else the type's default.
    Numbers are checked where they are read. ``used`` collects every key read, ``left_out`` names
    what the model has and the count does not.

    Raises ``ConfigError`` naming the key, its value and the rule.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        defaults: Mapping[str, Any],
        aliases: Mapping[str, tuple[str, ...]] | None = None,
        *,
        where: str = "",
        model_type: str = "",
        arch: str = "",
        outer: Mapping[str, Any] | None = None,
    ) -> None:
        self._data = data
        self.outer = data if outer is None else outer
        """The whole file, where this is its ``text_config``."""
        self._defaults = defaults
        self._aliases = {**ALIASES, **(aliases or {})}
        self._where = where
        self.model_type = model_type
        self.arch = arch
        self.used: set[str] = set()
        self.keys: dict[str, str] = {}
        self.left_out: list[str] = []
        self.assumed: list[str] = []
        self.strict = False
        """Whether null is refused, read as an attribute, where the type has a number."""
        self.parts: dict[str, Config] = {}
        self.inside: tuple[str, ...] = ()
        """The section whose keys feed the model's fields, where that is not the file itself."""

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        value = self._find(key)
        if value is _MISSING:
            raise ConfigError(f"{self._where}{key}: is missing; add it")
        needed = self.strict or key in NEEDED
        if value is None and needed and type(self._defaults.get(key)) is int:
            self.fail(key, None, "must be a whole number")
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value that may be absent; ``default`` also stands in for null."""
        value = self._find(key)
        return default if value is _MISSING or value is None else value

    def has(self, key: str) -> bool:
        """Whether the file itself states a key (under its own name), not null."""
        return self._data.get(key) is not None

    def need(self, key: str) -> Any:
        """Return a value that the type has no default for. Raises ``ConfigError``."""
        value = self.get(key)
        if value is None:
            raise ConfigError(f"{self._where}{key}: is missing; add it")
        return value

    def own(self, *names: str, default: Any = _MISSING) -> Any:
        """Return the value under the first of these names that the type has a default for: types
        that share a reader call the same thing by names of their own, and a name that is another
        type's must not win over them.

        Raises ``ConfigError`` where there is none and no ``default``.
        """
        known = next((name for name in names if name in self._defaults), None)
        value = None if known is None else self.get(known)
        if value is None and default is _MISSING:
            raise ConfigError(f"{self._where}{known or names[0]}: is missing; add it")
        return default if value is None else value

    def size(self, key: str, default: Any = None) -> int:
        """Return a whole number of at least 1: what a shape is about to be made of.

        Raises ``ConfigError``.
        """
        value = self.get(key, default)
        if type(value) is not int or value < 1:
            self.fail(key, value, "must be a whole number of at least 1")
        return int(value)

    def _find(self, key: str, *, checked: bool = True) -> Any:
        names = (key, *self._aliases.get(key, ()))
        self.used.update(names)
        for name in names:
            if name in self._data:
                value = self._data[name]
                default = self._defaults.get(key, _MISSING)
                return self._checked(name, value, default) if checked else value
        return self._defaults.get(key, _MISSING)

    def _checked(self, key: str, value: Any, default: Any) -> Any:
        if type(value) is float and value.is_integer() and type(default) is int:
            value = int(value)
        if type(default) is bool and value in (0, 1):
            return bool(value)
        if type(default) in (bool, str, list, dict) and value is not None:
            kind = type(default)
            if not isinstance(value, kind):
                self.fail(key, value, f"must be {_KINDS[kind]}")
        elif type(default) is int and value is not None and type(value) is not int:
            self.fail(key, value, "must be a whole number")
        if isinstance(value, str | dict) and key.endswith(_SIZES):
            self.fail(key, value, "must be a whole number")
        if type(value) is int and not -rules.MOST_TOKENS <= value <= rules.MOST_TOKENS:
            self.fail(key, value, f"must be at most {rules.MOST_TOKENS:,}", "lower it")
        if type(value) is int and key.endswith("layers") and value > rules.MOST_LAYERS:
            self.fail(key, value, f"must be at most {rules.MOST_LAYERS:,}", "lower it")
        if type(value) is int and value < 0 <= (default if type(default) is int else -1):
            self.fail(key, value, "must not be negative", "raise it")
        return value

    def fail(self, key: str, value: Any, rule: str, fix: str = "change it") -> NoReturn:
        """Raise ``ConfigError``: key, value, rule, fix on one line."""
        raise ConfigError(f"{self._where}{key} = {shown(value)}: {rule}; {fix}")

    def whole(self, key: str, default: int) -> int:
        """Return a whole number; ``default`` where it is absent, null or 0."""
        value = self.get(key, 0) or default
        if type(value) is not int or value < 0:
            self.fail(key, value, "must be a whole number")
        return int(value)

    def factor(self, key: str) -> float:
        """Return a number above 0 that a width is multiplied by. Raises ``ConfigError``."""
        value = getattr(self, key)
        if type(value) not in (int, float) or not 0 < value <= rules.MOST_COUNT:
            self.fail(key, value, "must be a number above 0")
        return float(value)

    def choose(self, key: str, value: Any, among: Mapping[str, Any]) -> Any:
        """Return what a word stands for. Raises ``ConfigError`` for one that is not known."""
        if not isinstance(value, str) or value not in among:
            self.fail(key, value, f"must be one of {', '.join(among)}")
        return among[value]

    def share(self, whole: str, parts: str) -> int:
        """Return ``whole`` shared out over ``parts``: a head's width where none is stated.

        Raises ``ConfigError`` where it does not divide.
        """
        total, count = self.size(whole), self.size(parts)
        if total % count:
            self.fail(parts, count, f"must divide {whole} = {total}")
        return int(total // count)

    def per_layer(self, key: str, n: int, value: Any = _MISSING) -> list[Any]:
        """Return a list with one entry a layer; a single value stands for all of them.

        Raises ``ConfigError`` for a list of another length.
        """
        found = self._find(key, checked=False) if value is _MISSING else value
        if not isinstance(found, list | tuple):
            return [found] * n
        if len(found) != n:
            raise LengthError(self._where, key, len(found), n)
        return list(found)

    def windows(self, sliding: Callable[[int], bool], key: str = "sliding_window") -> Layers:
        """Return ``window`` for each layer that has one: by ``layer_types``, or, where the file
        has none, where ``sliding`` of the layer's number holds."""
        n, window = self.size("num_hidden_layers"), self.get(key, 0)
        kinds = self.get("layer_types")
        if kinds is None:
            flags = [sliding(i) for i in range(n)]
        else:
            flags = [
                bool(self.choose("layer_types", kind, SEES))
                for kind in self.per_layer("layer_types", n, kinds)
            ]
        return [{"window": window} if flag and window else {} for flag in flags]

    def dense(self, first: int | Callable[[int], bool]) -> Layers:
        """Return ``n_experts: 0`` for each layer without experts: by ``mlp_layer_types``, or, where
        the file has none, the first so many, or where ``first`` of the layer's number holds."""
        n = self.size("num_hidden_layers")
        kinds = self.get("mlp_layer_types")
        if kinds is not None:
            words = {"dense": True, "sparse": False}
            flags = [
                bool(self.choose("mlp_layer_types", kind, words))
                for kind in self.per_layer("mlp_layer_types", n, kinds)
            ]
        elif callable(first):
            flags = [first(i) for i in range(n)]
        elif type(first) is int:
            flags = [i < first for i in range(n)]
        else:
            self.fail("first_k_dense_replace", first, "must be a whole number")
        return [{"n_experts": 0} if flag else {} for flag in flags]

    def sub(self, key: str, defaults: Mapping[str, Any] | None = None) -> Config:
        """Return a nested section (``vision_config``) as a Config of its own; {} where absent."""
        inner = self._data.get(key) or {}
        self.used.add(key)
        if not isinstance(inner, dict):
            self.fail(key, inner, "must be a section")
        kind = inner.get("model_type") or ""
        return Config(inner, defaults or {}, where=f"{self._where}{key}.", model_type=str(kind))

    def part(
        self,
        key: str,
        defaults: Mapping[str, Any],
        aliases: Mapping[str, tuple[str, ...]] | None = None,
        *,
        model_type: str = "",
        main: bool = False,
        absent: Mapping[str, Any] | None = None,
    ) -> Config:
        """Return a section as ``sub`` does, with its unread keys among this config's.

        ``main`` is the language model's: its keys feed the model's fields. ``absent`` stands in
        where the file has no such section.
        """
        found, inner = self.sub(key, defaults), self._data.get(key)
        if inner is None:
            inner = absent or {}
        elif not isinstance(inner, dict):
            self.fail(key, inner, "must be a section")
        part = Config(
            inner,
            defaults,
            aliases,
            where=found._where,
            model_type=found.model_type or model_type,
            arch=self.arch,
            outer=self.outer,
        )
        part.left_out, part.assumed, part.strict = self.left_out, self.assumed, not main
        self.parts[key] = part
        if main and inner is self._data.get(key):
            part.keys, self.inside = self.keys, (key,)
        return part

    def leave_out(self, key: str, what: str) -> None:
        """Note a part that the file describes and the count does not hold."""
        self.used.add(key)
        if self._data.get(key):
            self.left_out.append(f"{what} ({key})")

    def ignore(self, *keys: str) -> None:
        """Mark keys as read that change no shape in this family."""
        self.used.update(keys)

    def card(self, **fields: Any) -> dict[str, Any]:
        """Return the fields of a specification: the card's from their usual keys, then ``fields``.

        A card field given here replaces the key's (None leaves it out); a key that neither the
        file nor the type knows is left out.
        """
        found: dict[str, Any] = {}
        for field, key in CARD.items():
            if field in fields:
                continue
            value = self._find(key)
            if value is not _MISSING and value is not None:
                found[field] = value
                self.keys[field] = key
        found.update(fields)
        return {field: value for field, value in found.items() if value is not None}

    def unused(self) -> list[str]:
        """Return the keys that might change shapes and were not read."""
        own = (k for k, v in self._data.items() if k not in self.used and matters(k, v))
        inner = (f"{key}.{name}" for key, part in self.parts.items() for name in part.unused())
        return sorted([*own, *inner])

    def known(self) -> set[str]:
        """Return the keys that this type reads, those of a section after its name too."""
        found = {*self._defaults, *self.used}
        for key, part in self.parts.items():
            names = part.known()
            found |= names if (key,) == self.inside else set()
            found |= {f"{key}.{name}" for name in names}
        return found


_SIZES = ("_size", "_dim", "_heads", "_rank", "_experts", "_kernel", "_step")
"""How keys of sizes end whose type has no default."""
_KINDS = {bool: "true or false", str: "text", list: "a list", dict: "a section"}

SEES = {"full_attention": 0, "sliding_attention": 1, "chunked_attention": 1}
"""Words of ``layer_types``, and whether such a layer sees a part of the positions."""

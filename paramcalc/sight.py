"""What a token sees: how many positions attention compares it with.

Each class answers four questions in plain arithmetic: ``positions(n)``, what the n-th token of a
sequence sees; ``pairs(n)``, the sum of that over n tokens, exact; ``kept(n)``, how many positions
a cache holds after n tokens; ``most``, how many positions a token can ever see, None for no limit.
``all_pairs(sight, n)`` is what a kernel that skips nothing computes.
"""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.numbers import Num, minimum, triangle


class Causal(NamedTuple):
    """Every position up to the token itself."""

    @property
    def most(self) -> None:
        """No limit."""
        return None

    def positions(self, n: Num) -> Num:
        """The n-th token sees n positions."""
        return n

    def pairs(self, n: Num) -> Num:
        """n (n + 1) / 2."""
        return triangle(n)

    def kept(self, n: Num) -> Num:
        """All n."""
        return n


class Window(NamedTuple):
    """The last ``size`` positions, the token itself included."""

    size: Num

    @property
    def most(self) -> Num:
        """W."""
        return self.size

    def positions(self, n: Num) -> Num:
        """min(n, W)."""
        return minimum(n, self.size)

    def pairs(self, n: Num) -> Num:
        """W (W + 1) / 2 + (n - W) W once n passes W."""
        m = minimum(n, self.size)
        return triangle(m) + (n - m) * m

    def kept(self, n: Num) -> Num:
        """min(n, W)."""
        return minimum(n, self.size)


class Chunk(NamedTuple):
    """The positions of the token's own chunk of ``size``, up to the token itself."""

    size: Num

    @property
    def most(self) -> Num:
        """C."""
        return self.size

    def positions(self, n: Num) -> Num:
        """The place of token n inside its chunk."""
        return n - (n - 1) // self.size * self.size

    def pairs(self, n: Num) -> Num:
        """Whole chunks of C (C + 1) / 2 and one begun."""
        whole = n // self.size
        return whole * triangle(self.size) + triangle(n - whole * self.size)

    def kept(self, n: Num) -> Num:
        """min(n, C): an engine keeps a chunk's worth."""
        return minimum(n, self.size)


class Sparse(NamedTuple):
    """Causal, but only the best ``top_k`` positions that an indexer picks; all stay cached."""

    top_k: Num

    @property
    def most(self) -> Num:
        """k."""
        return self.top_k

    def positions(self, n: Num) -> Num:
        """min(n, k)."""
        return minimum(n, self.top_k)

    def pairs(self, n: Num) -> Num:
        """As a window of k: the count does not depend on which positions are picked."""
        return Window(self.top_k).pairs(n)

    def kept(self, n: Num) -> Num:
        """All n: any of them may be picked later."""
        return n


class Both(NamedTuple):
    """Every position of the sequence, before and after (encoders, cross attention)."""

    @property
    def most(self) -> None:
        """No limit."""
        return None

    def positions(self, n: Num) -> Num:
        """n."""
        return n

    def pairs(self, n: Num) -> Num:
        """n x n."""
        return n * n

    def kept(self, n: Num) -> Num:
        """All n."""
        return n


class BothWindow(NamedTuple):
    """Positions at most ``size // 2`` away on either side (ModernBERT's local attention)."""

    size: Num

    @property
    def most(self) -> Num:
        """2 (W // 2) + 1."""
        return self.size // 2 * 2 + 1

    def positions(self, n: Num) -> Num:
        """min(n, 2 (W // 2) + 1): a token far from both ends."""
        return minimum(n, self.most)

    def pairs(self, n: Num) -> Num:
        """n + 2 x the sum over tokens of min(tokens before, W // 2)."""
        reach = self.size // 2
        m = minimum(n, reach + 1)
        return n + 2 * (triangle(m - 1) + (n - m) * reach)

    def kept(self, n: Num) -> Num:
        """All n: an encoder keeps no cache."""
        return n


class BothChunk(NamedTuple):
    """The positions of the token's own chunk of ``size``, before and after (Pegasus-X)."""

    size: Num

    @property
    def most(self) -> Num:
        """C."""
        return self.size

    def positions(self, n: Num) -> Num:
        """min(n, C): a token of a whole chunk."""
        return minimum(n, self.size)

    def pairs(self, n: Num) -> Num:
        """Whole chunks of C x C and one begun."""
        whole = n // self.size
        rest = n - whole * self.size
        return whole * self.size * self.size + rest * rest

    def kept(self, n: Num) -> Num:
        """All n: an encoder keeps no cache."""
        return n


class BothCompressed(NamedTuple):
    """One entry for each whole block of ``size`` positions, before and after (LongT5's global
    tokens)."""

    size: Num

    @property
    def most(self) -> None:
        """No limit."""
        return None

    def positions(self, n: Num) -> Num:
        """n // B."""
        return n // self.size

    def pairs(self, n: Num) -> Num:
        """n (n // B)."""
        return n * (n // self.size)

    def kept(self, n: Num) -> Num:
        """All n: an encoder keeps no cache."""
        return n


class Compressed(NamedTuple):
    """One entry for each whole block of ``size`` positions up to the token, the best ``top_k`` of
    them if an indexer picks (DeepSeek-V4)."""

    size: Num
    top_k: Num | None = None

    @property
    def most(self) -> Num | None:
        """k, or no limit."""
        return self.top_k

    def positions(self, n: Num) -> Num:
        """min(n // B, k)."""
        entries = n // self.size
        return entries if self.top_k is None else minimum(entries, self.top_k)

    def pairs(self, n: Num) -> Num:
        """B (0 + 1 + ... + (q - 1)) for the tokens before block q ends, then q each."""
        q = self.positions(n)
        return self.size * triangle(q - 1) + q * (n - q * self.size + 1)

    def kept(self, n: Num) -> Num:
        """n // B: all of them may be picked later."""
        return n // self.size


class Blocks(NamedTuple):
    """The token's own block of ``size`` positions and the best ``top_k`` - 1 whole ones before it,
    which an indexer picks (MiniMax M3)."""

    size: Num
    top_k: Num

    @property
    def most(self) -> Num:
        """k B, seen by the last token of a block."""
        return self.size * self.top_k

    def positions(self, n: Num) -> Num:
        """n up to k B, then (k - 1) B and the token's place in its own block."""
        m = minimum(n, self.most)
        return m - self.size + Chunk(self.size).positions(n - m + self.size)

    def pairs(self, n: Num) -> Num:
        """Causal up to k B, then (k - 1) B each and chunks of B."""
        m = minimum(n, self.most)
        return triangle(m) + (n - m) * (m - self.size) + Chunk(self.size).pairs(n - m)

    def kept(self, n: Num) -> Num:
        """All n: any of them may be picked later."""
        return n


class State(NamedTuple):
    """A recurrent state: one thing of constant size that every token reads and rewrites."""

    @property
    def most(self) -> Num:
        """1."""
        return 1

    def positions(self, n: Num) -> Num:
        """1."""
        return minimum(n, 1)

    def pairs(self, n: Num) -> Num:
        """n: each token meets the state once."""
        return n

    def kept(self, n: Num) -> Num:
        """One state, once a token has been read."""
        return minimum(n, 1)


Sight = (
    Causal
    | Window
    | Chunk
    | Sparse
    | Both
    | BothWindow
    | BothChunk
    | BothCompressed
    | Compressed
    | Blocks
    | State
)


def all_pairs(sight: Sight, n: Num) -> Num:
    """Return the pairs of n tokens that a kernel without skipping computes: n x n, n states, or n x
    the blocks."""
    if isinstance(sight, Compressed | BothCompressed):
        return n * (n // sight.size)
    return n if isinstance(sight, State) else n * n

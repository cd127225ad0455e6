"""What a sheet cannot answer: rows that are left out because of the columns asked for."""

from __future__ import annotations

from paramcalc.deploy import columns as deployed
from paramcalc.deploy.arithmetic import lack
from paramcalc.sweep.grid import Sheet


def leave_out(sheet: Sheet, names: list[str]) -> None:
    """Leave out a sheet's rows, with the reason, where figures of a deployment are asked for
    (``names`` of columns) that its model or its GPU does not have."""
    asked = [deployed.COLUMNS[name] for name in names if name in deployed.COLUMNS]
    if sheet.words["gpu"] is None or not asked or not sheet.rows:
        return
    reason = _reason(sheet, asked)
    if reason is not None:
        sheet.refuse(reason)


def _reason(sheet: Sheet, asked: list[deployed.Deployed]) -> str | None:
    """Why a model on a GPU has no such figures; None where it has."""
    name = sheet.model.name
    timed = any(column.timed for column in asked)
    if timed and not sheet.spec.writes:
        return f"{name} writes no tokens, so it has no times of them"
    fmt = sheet.model.format(str(sheet.words["dtype"]))
    if (lacking := lack(sheet.words["gpu"], fmt, timed=timed)) is not None:
        return lacking
    batch = any(column.key == "largest_batch" for column in asked)
    if batch and not any(cache.elements(1) for cache in sheet.model.ledger.caches):
        return f"{name} keeps no cache, so it has no largest batch"
    return None

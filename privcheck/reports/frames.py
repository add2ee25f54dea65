"""Results as pandas frames; pandas is loaded when a frame is made, and is no dependency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from privcheck.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd


def make_frame(content: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Returns a frame.

    Args:
        content: Columns by name, or rows.

    Raises:
        ParameterError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ParameterError("frames are pandas', which is not installed: pip install pandas") from None
    return pd.DataFrame(content)

"""Credentials in addresses, which are left out of all that is shown and written."""

from __future__ import annotations

import logging
import re
from typing import Any

_HIDDEN = "***"
_BEFORE_HOST = re.compile(r"(?<=://)[^/@\s'\"]*@")
_IN_QUERY = re.compile(
    r"(?i)(?<=[?&;])((?:[\w.%-]*(?:secret|password|passwd|token|credential|signature|access.?key|api.?key)[\w.%-]*|sig|key)=)[^&;\s'\"]+"
)


def without_credentials(text: str) -> str:
    """A text in which what may be a credential in an address is replaced: what stands before "@", and parameters of such names.

    >>> without_credentials("s3://KEY:SECRET@bucket/in?region=eu&secret_key=S")
    's3://***@bucket/in?region=eu&secret_key=***'
    """
    return _IN_QUERY.sub(rf"\g<1>{_HIDDEN}", _BEFORE_HOST.sub(f"{_HIDDEN}@", text))


def cleaned(value: Any) -> Any:
    """A value of JSON types with the same done to all texts in it."""
    if isinstance(value, str):
        return without_credentials(value)
    if isinstance(value, dict):
        return {key: cleaned(part) for key, part in value.items()}
    return [cleaned(part) for part in value] if isinstance(value, (list, tuple)) else value


class WithoutCredentials(logging.Filter):
    """Lets every record of a log pass, without credentials."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record's message; always true."""
        record.msg, record.args = without_credentials(record.getMessage()), None
        return True

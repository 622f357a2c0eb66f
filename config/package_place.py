"""Where packages are to lie, read off AFTERTURN_PACKAGES_URL: every part of it stands there, nothing is looked up."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_TAKES = "takes file:///folder or s3://ID:SECRET@bucket/prefix?endpoint=https://host[&region=NAME]"


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A local folder."""

    path: Path


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """A bucket of an S3-compatible store."""

    bucket: str
    prefix: str
    endpoint: str
    region: str
    key_id: str
    secret: str = field(repr=False)


def place(url: str) -> FolderPlace | BucketPlace:
    """What a URL names. ValueError says what is taken, and repeats nothing of a URL that may hold a secret."""
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and len(parts.path) > 1 and parts.path.startswith("/"):
        return FolderPlace(Path(unquote(parts.path)))
    if parts.scheme == "s3":
        return _bucket(parts)
    raise ValueError(_TAKES)


def _bucket(parts: SplitResult) -> BucketPlace:
    asked = parse_qs(parts.query, keep_blank_values=True)
    endpoint, region = asked.pop("endpoint", [""])[0], asked.pop("region", ["us-east-1"])[0]
    bucket, prefix = parts.hostname or "", unquote(parts.path.strip("/"))
    if asked or not _BUCKET.fullmatch(bucket) or (prefix and not _PREFIX.fullmatch(prefix)):
        raise ValueError(_TAKES)
    if not parts.username or not parts.password:
        raise ValueError(f"{_TAKES}; the id and the secret are percent-encoded")
    _check(endpoint)
    return BucketPlace(bucket, prefix, endpoint, region, unquote(parts.username), unquote(parts.password))


def _check(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(_TAKES)
    try:
        address = ipaddress.ip_address(parts.hostname)
    except ValueError:
        return  # a name
    if (getattr(address, "ipv4_mapped", None) or address).is_link_local:
        raise ValueError("takes no link-local endpoint: a host's metadata service listens there")

"""Column shapes that every table uses."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Identity, func
from sqlmodel import Field


def identity() -> Any:
    """A bigint that PostgreSQL numbers."""
    return Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))


def moment(*, nullable: bool = False) -> Any:
    """An instant with its zone."""
    return Field(default=None, sa_column=Column(DateTime(timezone=True), nullable=nullable))


def created() -> Any:
    """The instant at which the database took the row."""
    return Field(default=None, sa_column=Column(DateTime(timezone=True), nullable=False, server_default=func.now()))


def utc_now() -> datetime:
    """Now, aware."""
    return datetime.now(UTC)


def space(*, primary_key: bool = False) -> Any:
    """The space of a row. Foreign keys and what goes with a deleted row stand in the migrations alone."""
    return Field(sa_column=Column(BigInteger, primary_key=primary_key, nullable=False))

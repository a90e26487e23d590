"""The W&B server: whether it can be reached, whether there is a key for it, and names that it would refuse."""

import netrc
import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from ablab.config import compose
from ablab.config.options import Logger
from ablab.errors import UserError
from ablab.tracking.card import tags_of

SECONDS = 5.0
"""Seconds in which the server must answer to count as reachable."""

KNOWN = "ABLAB_WANDB_OUT_OF_REACH"
"""Variable in which a sweep tells its runs why the server is out of reach, so that it is found once."""


def address() -> str:
    """Return the address of the server: WANDB_BASE_URL, or what `wandb login` has set."""
    if "WANDB_BASE_URL" in os.environ:
        return os.environ["WANDB_BASE_URL"]
    import wandb

    return str(wandb.setup().settings.base_url)


def out_of_reach() -> str | None:
    """Return why the server cannot be reached, or None."""
    if KNOWN in os.environ:
        return os.environ[KNOWN]
    server = address()
    try:
        urllib.request.urlopen(server, timeout=SECONDS).close()
    except urllib.error.HTTPError:
        return None  # the server answered
    except (OSError, ValueError) as error:
        return f"no answer from {server}: {getattr(error, 'reason', error)}"
    return None


def check_login(logger: Logger) -> None:
    """Raise UserError if W&B would refuse the tags, or if runs are to be sent at once without a key for its server."""
    tags_of(logger)
    if logger.own.get("mode") != "online" or KNOWN in os.environ:
        return
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return
    server = address()
    if not _has_entry(urlsplit(server).netloc):
        raise UserError(
            f"logger.mode=online: there is no key for {server}; allowed: `wandb login` first, or WANDB_API_KEY in the "
            "environment; or logger.mode=offline now and `ablab sync` later"
        )


def check_server(instead: str = "") -> None:
    """Raise UserError where nothing can be sent now: without a key, or with the server out of reach.

    `instead`: what can be done all the same, in words that follow.
    """
    check_login(compose(["logger=wandb", "logger.mode=online"]).config.logger)
    if (problem := out_of_reach()) is not None:
        raise UserError(f"W&B is out of reach ({problem}); nothing was sent{instead}")


def _has_entry(host: str) -> bool:
    """Return whether the user's netrc file, where `wandb login` puts keys, has one for the host."""
    named = os.environ.get("NETRC")
    for path in [Path(named)] if named else [Path(os.path.expanduser(name)) for name in ("~/.netrc", "~/_netrc")]:
        try:
            found = netrc.netrc(path).authenticators(host)
        except (OSError, netrc.NetrcParseError):
            continue
        if found is not None and found[2]:
            return True
    return False

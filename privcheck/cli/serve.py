"""`privcheck serve`: the HTTP service; heavy imports are made when it runs."""

from __future__ import annotations

import ipaddress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from privcheck.cli.options import Place
from privcheck.errors import ParameterError, hide_passwords

_NEEDED: Final = ("fastapi", "uvicorn", "multipart", "cryptography")
_SHUTDOWN: Final = 5  # seconds for requests that are under way when the service is asked to end


@click.command()
@click.option(
    "--store",
    metavar="URL",
    default="ledger.db",
    show_default=True,
    help="The ledger: a path, sqlite:///path or postgresql://host/name; created if missing.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port; 0 for any.")
@click.option("--tls-cert", type=Place(), help="Certificate (PEM); for addresses other than this machine's.")
@click.option("--tls-key", type=Place(), help="Its key.")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy on this machine terminates TLS and names the requests' origin (X-Forwarded-For).",
)
@click.option("--push-heads", metavar="PLACE", help="Push signed heads to a file, https://host/path or git:REPOSITORY.")
@click.option(
    "--every",
    type=click.FloatRange(1, 86400),
    default=300,
    show_default=True,
    help="Seconds between pushes.",
)
def serve(
    *, store: str, host: str, port: int, tls_cert: Path | None, tls_key: Path | None, behind_proxy: bool,
    push_heads: str | None, every: float,
) -> None:  # fmt: skip
    """Serve the ledger and calculations over HTTP (extra [service]).

    \b
    Examples:
      privcheck serve
      privcheck serve --store budget.db --push-heads https://witness.example.org/heads --every 60
      privcheck serve --store postgresql://ledger/budget --port 8443 --tls-cert c.pem --tls-key k.pem --host 0.0.0.0
    """
    check_extra()
    check_address(host, tls=tls_cert is not None, behind_proxy=behind_proxy)
    if (tls_cert is None) != (tls_key is None):
        raise ParameterError("expected --tls-cert and --tls-key together", name="tls-cert")
    if push_heads is not None:
        from privcheck.ledger.witnesses import open_witness

        open_witness(push_heads)  # before a ledger is made
    import uvicorn

    from privcheck.service.app import LISTENS, Settings, create_app, open_or_create

    token = open_or_create(store)
    if token is not None:
        click.echo(
            f"new ledger {hide_passwords(store)}; the first officer's token, shown only this once:\n{token}", err=True
        )
    uvicorn.run(
        create_app(
            Settings(
                store=store,
                secure=tls_cert is not None or behind_proxy,
                push_heads=push_heads,
                push_seconds=every,
            )
        ),
        host=host,
        port=port,
        log_level="info",
        proxy_headers=behind_proxy,
        forwarded_allow_ips="127.0.0.1,::1" if behind_proxy else "",
        timeout_graceful_shutdown=_SHUTDOWN,
        ssl_certfile=None if tls_cert is None else str(tls_cert),
        ssl_keyfile=None if tls_key is None else str(tls_key),
        **LISTENS,
    )


def check_extra() -> None:
    """Check that the extra is installed.

    Raises:
        ParameterError: A package of the extra is not installed.
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        message = f"the service needs {', '.join(missing)}: pip install 'privcheck[service]'"
        raise ParameterError(message, name="serve", given=missing[0])


def check_address(host: str, *, tls: bool, behind_proxy: bool) -> None:
    """Refuse an address that other machines can reach in clear text.

    Raises:
        ParameterError: The address is not a loopback address, and there is neither TLS nor a proxy.
    """
    if tls or behind_proxy or host == "localhost":
        return
    try:
        own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        own = False
    if not own:
        message = f"--host {host} may be reached by other machines, so tokens would travel in clear text"
        raise ParameterError(f"{message}: give --tls-cert and --tls-key, or --behind-proxy", name="host", given=host)

"""What commands of serving may do for callers on other machines."""

from __future__ import annotations

from typing import Final

from cargobike.core.registering.afar import Afar

AFAR: Final = {
    "serve": Afar(role="run", brings=("output",), sends=("tls_certificate", "tls_key", "specification", "tokens")),
    "deployments log": Afar(brings=("output",)),
    "deployments tidy": Afar(role="administer"),
    "deployments ship": Afar(role="run", brings=("output",), texts=("image",)),
    "deployments ls": Afar(),
    "deployments show": Afar(),
    "deployments roll": Afar(role="run"),
    "deployments promote": Afar(role="run"),
    "deployments rollback": Afar(role="run"),
    "deployments scale": Afar(role="run"),
    "deployments logs": Afar(),
    "deployments start": Afar(role="run"),
    "deployments stop": Afar(role="run"),
    "deployments rm": Afar(role="administer"),
    "kubernetes ls": Afar(role="run"),
    "kubernetes status": Afar(role="run"),
    "kubernetes show": Afar(role="run"),
    "kubernetes logs": Afar(role="run"),
    "kubernetes rollback": Afar(role="run"),
    "kubernetes scale": Afar(role="run"),
    "kubernetes rm": Afar(role="administer"),
}

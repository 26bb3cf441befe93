"""The flags of C{twist kubeapi}: the flags of kube-apiserver, and a few additional ones."""

from __future__ import annotations

from typing import Final

from .flags import (
    admission,
    apienablement,
    auditing,
    authentication,
    authorization,
    controllers,
    etcd,
    features,
    generic,
    kubelets,
    kubetwist,
    logs,
    metrics,
    misc,
    secureserving,
    traces,
)

#: The flags in the order of the help.
FLAGS: Final = (
    *kubetwist.FLAGS,
    *generic.FLAGS,
    *etcd.FLAGS,
    *secureserving.FLAGS,
    *authentication.FLAGS,
    *authorization.FLAGS,
    *auditing.FLAGS,
    *apienablement.FLAGS,
    *admission.FLAGS,
    *controllers.FLAGS,
    *features.FLAGS,
    *logs.FLAGS,
    *traces.FLAGS,
    *kubelets.FLAGS,
    *misc.FLAGS,
    *metrics.FLAGS,
)

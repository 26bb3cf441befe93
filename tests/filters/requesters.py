"""Users that impersonate other users."""

from __future__ import annotations

from kubetwist.api.resource import UserInfo

BOSS = UserInfo("boss", groups=("system:authenticated",))

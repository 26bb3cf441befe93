"""The store in etcd, which several servers can share."""

from .storage import EtcdStorage

__all__ = ["EtcdStorage"]

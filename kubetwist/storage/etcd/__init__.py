"""The store in etcd, which several servers can share."""

from ._storage import EtcdStorage

__all__ = ["EtcdStorage"]

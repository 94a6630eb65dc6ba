"""Which nodes have one tree: those whose path leads to the same folder of the same disk."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.cluster.model import Identity, Node

_NETWORK = (
    *("nfs", "nfs3", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "glusterfs", "cifs", "smb2", "smb3", "9p", "afs"),
    *("virtiofs", "wekafs", "orangefs", "pvfs2", "panfs", "vastnfs", "cpfs", "ocfs2", "gfs2"),
)
_LOCAL_FUSE = ("fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.ntfs", "fuseblk")


def is_shared_storage(identity: Identity) -> bool:
    """Whether a file system is one that several machines see."""
    kind = identity.kind
    return kind in _NETWORK or (kind.startswith("fuse") and kind not in _LOCAL_FUSE)


def trees(nodes: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """Nodes that answered, by the tree that they have; each group in the order of `nodes`.

    On a disk of its own a tree is known by kernel, device and inode. On a file system of the network devices differ
    from one machine to the next: there inode and time of change tell.
    """
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        if node.facts is not None and node.facts.identity is not None:
            groups.setdefault(_key(node.facts.identity), []).append(node)
    return tuple(tuple(group) for group in groups.values())


def _key(one: Identity) -> tuple[object, ...]:
    if is_shared_storage(one):
        return "network", one.inode, one.born
    return one.boot, one.device, one.inode

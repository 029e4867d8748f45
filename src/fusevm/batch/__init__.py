"""Many calls on many cores: processes of this machine, or a Dask cluster; sweeps and fuzzing on top of them.

All of them have the same methods and the same results as `EVM.simulate_many`. The state is sent to a worker once.
"""

from typing import TYPE_CHECKING, Any

from fusevm.batch.fuzz import Finding, Report, fuzz
from fusevm.batch.pool import Pool, WorkerLost
from fusevm.batch.processes import Processes
from fusevm.batch.threads import Threads

if TYPE_CHECKING:
    from fusevm.batch.cluster import Cluster

__all__ = ["Cluster", "Finding", "Pool", "Processes", "Report", "Threads", "WorkerLost", "fuzz"]


def __getattr__(name: str) -> Any:
    """`Cluster` is imported when it is first asked for: Dask takes a second to load."""
    if name == "Cluster":
        from fusevm.batch.cluster import Cluster

        return Cluster
    raise AttributeError(f"module 'fusevm.batch' has no attribute {name!r}")

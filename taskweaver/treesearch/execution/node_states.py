"""Variables of scripts' kernels on disk, from which a chat on a node goes on."""

from __future__ import annotations

from dataclasses import dataclass

from taskweaver.ces.common import Client
from taskweaver.session.round_states import RoundEnd, RoundStates
from taskweaver.session.storage.store import SessionFiles
from taskweaver.treesearch.model.journal import Journal


@dataclass(frozen=True, slots=True)
class NodeStates:
    """Stores the variables of nodes as those of the rounds on their branches."""

    files: SessionFiles
    states: RoundStates
    journal: Journal

    def store(self, node_id: str, client: Client) -> None:
        """Store the variables of a kernel in the background, as they are now."""
        branch = self.journal[node_id].branch
        if branch:
            round_id = self.files.round_ids(branch)[-1]
            self.states.end_round(branch, [RoundEnd(branch, round_id, client)])
            self.states.settle()  # the kernel may end once its copy is forked

    def close(self) -> None:
        """Finish storing."""
        self.states.close()

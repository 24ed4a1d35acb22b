"""Configuration of the tree search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taskweaver.ces.command_process import CommandLimits
from taskweaver.ces.limits import KernelLimits
from taskweaver.config.module_config import ModuleConfig
from taskweaver.treesearch.model.limits import AskLimits, PhaseLimits, RoleModels
from taskweaver.treesearch.model.node import Objective
from taskweaver.treesearch.model.policy import SearchRules

STAGES = 4
_PHASE0 = {"true": "node", "false": "off"}
"""Values of the first release."""


class SearchConfig(ModuleConfig):
    """Keys under ``search.``, described in docs/configuration.md.

    Attributes:
        folder: Where runs are kept.
        executor: Where jobs run: ``local`` or ``dask``.
        scheduler: Address of the scheduler of Dask.
        rules: Numbers of the policy.
        allowance: Most nodes, seconds, tokens and money of a run; 0 is no limit.
        limits: Limits of phases; those on resources are the keys of kernels.
        asking: How often a model is asked.
        models: Models by their work.
        phase0: Nodes whose plan is asked for: ``draft``, ``node`` or ``off``.
        stage_nodes: Most nodes of each stage.
        passed: Names of the host's variables that commands of attempts are given.
    """

    def limits_on(self, memory_bytes: int) -> PhaseLimits:
        """Return the limits of phases on a machine whose default limit of memory is given."""
        if self.src.get_int("execution.memory_limit_mb", None) is not None:
            return self.limits
        command = replace(self.limits.command, memory_bytes=memory_bytes)
        return replace(self.limits, command=command)

    def _configure(self) -> None:
        self._set_name("search")
        self.folder = Path(self._get_path("folder"))
        self.prompt_dir = Path(self._get_path("prompt_dir"))
        self.workers = self._get_int("workers")
        self.executor = self._get_enum("executor")
        self.scheduler = self._get_str("scheduler")
        self.model_calls = self._get_int("model_calls")
        self.steps = self._get_int("steps")
        self.stage_nodes = [self._get_int(f"stage{n}_nodes") for n in range(1, STAGES + 1)]
        self.rules = SearchRules(
            self._get_int("num_drafts"),
            self._get_float("debug_prob"),
            self._get_int("max_debug_depth"),
            self._get_float("uct_c"),
        )
        self.timed = self._get_enum("timed")
        self.num_seeds = self._get_int("num_seeds")
        self.policy = self._get_enum("policy")
        self.seed = self._get_int("seed")
        self.is_script = self._get_enum("phase_mode") == "single"
        self.is_forking = self._get_bool("fork_kernels")
        self.is_iterative = self._get_enum("install") == "iterative"
        self.install_steps = self._get_int("phase1_max_steps")
        seconds, tokens = self._get_float("time_limit_s"), self._get_int("token_limit")
        self.cost_limit = self._get_float("cost_limit")
        self.allowance = (self.steps, seconds, tokens, self.cost_limit)
        most = KernelLimits.from_source(self.src)
        self.limits = PhaseLimits(
            self._get_float("download_timeout_s"),
            self._get_float("compile_timeout_s"),
            self._get_float("run_timeout_s"),
            CommandLimits(
                memory_bytes=most.memory_limit_bytes,
                process_limit=most.process_limit,
                file_bytes=most.file_limit_bytes,
                open_files=most.open_file_limit,
                folder_bytes=most.folder_limit_bytes,
            ),
        )
        self.attempts = self._get_int("attempts")
        self.passed = tuple(map(str, self.src.get_list("execution.pass_environment")))
        self.asking = AskLimits(
            self._get_int("retries"), self.src.get_int("memory.max_memory_read_rounds")
        )
        self.phase0 = _PHASE0.get(phase0 := self._get_enum("phase0"), phase0)
        self.has_two_calls = self._get_enum("calls") == "two"
        self.has_review = self._get_bool("review")
        self.has_summaries = self._get_bool("summaries")
        self.has_plots = self._get_bool("plots")
        self.first_token_s = self._get_float("first_token_timeout_s")
        self.models = RoleModels(
            *(self._get_str(f"{work}_alias") for work in ("code", "feedback", "vlm", "summary"))
        )
        self.has_goals = self._get_bool("goals")
        self.has_judge = self._get_bool("judge")
        self.max_substages = self._get_int("max_substages")
        self.has_memory = self.src.get_bool("memory.enabled")
        resources = self._get_path("resources")
        self.resources = Path(resources) if resources else None

    @property
    def draws_later(self) -> bool:
        """Whether plots are drawn beside the next attempts.

        Where a model looks at plots, one worker waits for its words: the next prompt has them.
        """
        return self.has_two_calls and (self.workers > 1 or not self.models.vlm)

    def is_timed(self, objective: Objective) -> bool:
        """Return whether runs have the machine alone, since their metric depends on its load."""
        return self.timed == "always" or (self.timed == "auto" and objective.is_timed)

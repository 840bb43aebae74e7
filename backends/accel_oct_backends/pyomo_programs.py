"""CBC and GLPK with corrected readers of their output. Importing this module imports Pyomo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pyomo.common.collections import Bunch
from pyomo.common.tempfiles import TempfileManager
from pyomo.opt import TerminationCondition
from pyomo.solvers.plugins.solvers.CBCplugin import CBCSHELL
from pyomo.solvers.plugins.solvers.GLPK import GLPKSHELL

_SOLUTION_COMMAND = "-solu"
_CBC_INFEASIBLE = "Problem is infeasible"
#: Of releases after 2.10, which then write a solution of unknown status.
_CBC_PROVED = "infeasibility proved"
_GLPK_INFEASIBLE = "HAS NO PRIMAL FEASIBLE SOLUTION"


class CbcProgram(CBCSHELL):  # type: ignore[misc]
    """CBC with solutions read in full precision, and with its crash on infeasible models handled.

    Its text file has eight digits per value. Its binary file has all digits: the numbers of rows and columns, the
    objective, then activities, duals, values and reduced costs.
    """

    _values_file: str

    def create_command_line(self, executable: str, problem_files: Any) -> Any:
        command = super().create_command_line(executable, problem_files)
        self._values_file = f"{self._soln_file}.bin"
        TempfileManager.add_tempfile(self._values_file, exists=False)
        command.cmd += ["-saveSolution", self._values_file]
        return command

    def _execute_command(self, command: Any) -> list[Any]:
        """Run CBC; without preprocessing it crashes while it writes the solution of an infeasible model."""
        code, log = super()._execute_command(command)
        if code == 0 and _CBC_PROVED in log:
            self._write_infeasible()
            return [code, log]
        if code == 0 or _SOLUTION_COMMAND not in command.cmd:
            return [code, log]
        unwritten = Bunch(**command)
        unwritten.cmd = command.cmd[: command.cmd.index(_SOLUTION_COMMAND)]
        code_again, log_again = super()._execute_command(unwritten)
        if code_again == 0 and _CBC_INFEASIBLE in log_again:
            self._write_infeasible()
            return [code_again, log_again]
        return [code, log]

    def _write_infeasible(self) -> None:
        Path(self._soln_file).write_text("Infeasible - objective value 0\n", encoding="utf-8")

    def process_soln_file(self, results: Any) -> None:
        super().process_soln_file(results)
        path = Path(self._values_file)
        if not len(results.solution) or not path.exists():
            return
        content = path.read_bytes()
        n_rows, n_columns = np.frombuffer(content, dtype=np.int32, count=2)
        numbers = np.frombuffer(content, dtype=np.float64, offset=8)[1:]
        lines = Path(self._soln_file).read_text(encoding="utf-8").splitlines()[1 + n_rows :]
        if len(lines) == n_columns:  # Pyomo takes columns for rows if presolve has removed all rows
            variables = results.solution(0).variable
            for line, value in zip(lines, numbers[2 * n_rows :].tolist(), strict=False):
                name = line.replace("**", " ").split()[1]
                if name in variables or not n_rows:
                    variables[name] = {"Value": value}


class GlpkProgram(GLPKSHELL):  # type: ignore[misc]
    """GLPK with its message on an infeasible relaxation: Pyomo recognises only that of the presolver."""

    def process_logfile(self) -> Any:
        results = super().process_logfile()
        if _GLPK_INFEASIBLE in Path(self._log_file).read_text(encoding="utf-8", errors="replace"):
            results.solver.termination_condition = TerminationCondition.infeasible
        return results

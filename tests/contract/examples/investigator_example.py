"""The first example of the public face: an agent with a tool, run from a script."""

from actors import Agent, tool
from supervision import run

LOGS = {"prod": "2 warnings, no errors.", "staging": "ERROR connection refused on port 5432."}


class Investigator(Agent):
    """You investigate logs. Use the read_log tool. Be brief."""

    model = "openai:gpt-5.2"

    @tool
    async def read_log(self, name: str) -> str:
        """Read a log file by name.

        Args:
            name: The log's name, e.g. "prod" or "staging".
        """
        return LOGS.get(name, f"no log named {name}")


if __name__ == "__main__":
    answer: str = run(Investigator, "Check the prod log and tell me what you find.")
    print(answer)

"""An agent with one tool. Needs a model: OPENAI_API_KEY, or OPENAI_BASE_URL of any server that speaks like OpenAI's.

python investigator.py, or: postroom run supervision.examples.investigator:Investigator "Check the prod log."
"""

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
    print(run(Investigator, "Check the prod log and tell me what you find."))

"""What the tests know of JupyterLab's page."""

TOKEN = "for-the-tests"
STATUS = ".jp-Notebook-ExecutionIndicator"
IDLE = f"{STATUS}[data-status=idle]"

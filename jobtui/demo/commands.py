"""The commands an agent runs: how lines show them, and the shell text that starts them."""

import msgspec

from jobtui.model.ids import PREFIX_LENGTH

SHELL = "('/bin/bash', '-l')"

_STDIN = """b"source $HOME/.bashrc
set -e
mkdir -p '.'
cd '.'
{slurm}export SIREPO_GLOBAL_RESOURCES_SERVER_TOKEN=''
export SIREPO_GLOBAL_RESOURCES_SERVER_URI='http://127.0.0.1:{port}/global-resources'
export SIREPO_MPI_CORES='{cores}'
export SIREPO_SIM_DB_FILE_SERVER_TOKEN='{token}'
export SIREPO_SIM_DB_FILE_SERVER_URI='http://127.0.0.1:{port}/sim-db-file/{uid}/'
export PYKERN_PKCONFIG_CHANNEL='prod'
export PYKERN_PKDEBUG_REDIRECT_LOGGING='1'
export PYKERN_PKDEBUG_WANT_PID_TIME='1'
export PYTHONUNBUFFERED='1'
export SIREPO_AUTH_LOGGED_IN_USER='{uid}'
export SIREPO_JOB_MAX_MESSAGE_BYTES='200000000'
export SIREPO_JOB_PING_INTERVAL_SECS='120'
export SIREPO_JOB_PING_TIMEOUT_SECS='15'
export SIREPO_JOB_VERIFY_TLS='False'
export SIREPO_SIMULATION_DB_LOGGED_IN_USER='{uid}'
export SIREPO_SRDB_ROOT='{root}'
export PYTHONPATH=''
export PYTHONSTARTUP=''
exec 'sirepo' 'job_cmd' '{run_dir}/in-{key}.json'
\""""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was started with. `token` and `agent_id` are secrets that show in its lines."""

    agent_id: str
    uid: str
    kind: str
    token: str
    port: int
    root: str
    exec_dir: str
    shows_agent: bool = True
    """Whether its commands say which agent they belong to, as they do since April 2020."""

    @property
    def prefix(self) -> str:
        """What lines show of the agent id."""
        return self.agent_id[:PREFIX_LENGTH]

    def start_text(self) -> str:
        """The settings an agent prints when it starts, secrets in the clear."""
        uri = f"http://127.0.0.1:{self.port}"
        return (
            f"{{'agent_id': '{self.agent_id}', 'dev_source_dirs': False, 'fastcgi_sock_dir': /tmp, "
            f"'global_resources_server_token': None, "
            f"'global_resources_server_uri': '{uri}/global-resources', "
            f"'mpich_shm_clean_up': False, 'no_hdf5_do_mpi_file_sync': False, "
            f"'sim_db_file_server_token': '{self.token}', "
            f"'sim_db_file_server_uri': '{uri}/sim-db-file/{self.uid}/', 'start_delay': 0, "
            f"'supervisor_uri': 'ws://127.0.0.1:{self.port}/job-agent-websocket'}}"
        )

    def stdin_text(self, run_dir: str, key: str, *, slurm: bool = False) -> str:
        """The shell text that starts a command in `run_dir`."""
        return _STDIN.format(
            slurm="export SIREPO_MPI_IN_SLURM='1'\n" if slurm else "",
            port=self.port,
            cores=4 if self.kind == "parallel" else 1,
            token=self.token,
            uid=self.uid,
            root=self.root,
            run_dir=run_dir,
            key=key,
        )


class Command:
    """A command that an agent has started. `state` is that of a run, None for others."""

    def __init__(
        self,
        identity: Identity,
        pid: int,
        *,
        jid: str,
        op_id: str | None,
        job_cmd: str,
        run_dir: str,
        kind: str = "_Cmd",
        serial: int = 0,
        state: str | None = None,
    ) -> None:
        self.pid = pid
        self.jid = jid
        self.op_id = op_id
        self.job_cmd = job_cmd
        self.run_dir = run_dir
        self.serial = serial
        self.state = state
        self.start: int | None = None
        self.ended = False
        self._kind = kind
        self._identity = identity

    def __str__(self) -> str:
        op = self.op_id[:PREFIX_LENGTH] if self.op_id else None
        agent = f"a={self._identity.prefix} " if self._identity.shows_agent else ""
        return f"{self._kind}({agent}jid={self.jid} o={op} job_cmd={self.job_cmd} run_dir={self.run_dir})"

    def process_text(self, *, killed: bool = False) -> str:
        """Its process as lines show it; the pid is not known any more once it was killed."""
        return f"_Process(pid={None if killed else self.pid} cmd={self})"

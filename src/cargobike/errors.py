"""Every error that Cargobike raises on purpose; `cargobike.core.errors` opens with the whole tree.

Example:
    >>> from cargobike import Searchspace
    >>> from cargobike.errors import SpaceError
    >>> try:
    ...     Searchspace(lr=("DUOBLE", [0.1, 1.0]))
    ... except SpaceError as error:
    ...     print(len(error.mistakes))
    1
"""

from __future__ import annotations

from cargobike.core.errors import (
    AuthenticationError,
    CargobikeError,
    ConnectionLostError,
    DeploymentError,
    EngineError,
    ExperimentFailedError,
    ForbiddenError,
    FrameError,
    FunctionError,
    GateError,
    InvalidInputError,
    MissingLibraryError,
    NotFoundError,
    OptimizerError,
    PredictionError,
    ProgramError,
    RecordError,
    RunCancelledError,
    ServerRefusedError,
    SignatureError,
    SpaceError,
    StepFailedError,
    StillReadingError,
    StoreError,
    SupersededError,
    TrialFailedError,
    TrialPaused,
    TrialStopped,
    UntrustedError,
    WaitError,
)

__all__ = [
    "AuthenticationError",
    "CargobikeError",
    "ConnectionLostError",
    "DeploymentError",
    "EngineError",
    "ExperimentFailedError",
    "ForbiddenError",
    "FrameError",
    "FunctionError",
    "GateError",
    "InvalidInputError",
    "MissingLibraryError",
    "NotFoundError",
    "OptimizerError",
    "PredictionError",
    "ProgramError",
    "RecordError",
    "RunCancelledError",
    "ServerRefusedError",
    "SignatureError",
    "SpaceError",
    "StepFailedError",
    "StillReadingError",
    "StoreError",
    "SupersededError",
    "TrialFailedError",
    "TrialPaused",
    "TrialStopped",
    "UntrustedError",
    "WaitError",
]

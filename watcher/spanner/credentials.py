"""Google's credentials: whether there are any, whether they give a token, and what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from google.auth import default
from google.auth.exceptions import (
    DefaultCredentialsError,
    GoogleAuthError,
    RefreshError,
    TransportError,
)
from google.auth.impersonated_credentials import Credentials as ImpersonatedCredentials
from google.auth.transport.requests import Request
from google.cloud import spanner
from google.oauth2.service_account import Credentials as KeyCredentials

from watcher.model.errors import AccessDeniedError, UnavailableError
from watcher.spanner.address import EMULATOR_HOST

CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
"""The variable of Google's clients that names a file of credentials."""
NONE_FOUND = "default credentials were not found"
"""How google-auth says that nothing names any."""
UNREADABLE = (GoogleAuthError, ValueError, KeyError, AttributeError, TypeError)
"""What google-auth raises of a file whose JSON has another form than it expects."""
LOG_IN = "run 'gcloud auth application-default login'"


def load_credentials(accounts: Sequence[str] = ()) -> Any:
    """The Application Default Credentials, or those of the last of ``accounts``: they may act as
    the first, and each account as the next. No call, but to find those of a machine in Google's
    cloud. Raises UnavailableError where there are none, or none that can be read."""
    try:
        credentials, _ = default(scopes=spanner.Client.SCOPE)
    except (*UNREADABLE, OSError) as error:
        raise UnavailableError(explain_credentials(error)) from error
    if not accounts:
        return credentials
    return ImpersonatedCredentials(
        source_credentials=credentials,
        target_principal=accounts[-1],
        # As IAM's API wants them: google-auth passes them on as they are.
        delegates=[f"projects/-/serviceAccounts/{account}" for account in accounts[:-1]],
        target_scopes=[*spanner.Client.SCOPE],
        quota_project_id=credentials.quota_project_id,
    )


def check_credentials(credentials: Any) -> None:
    """Asks for a token, where one has to be asked for. gRPC would say of one that is refused that
    the server does not answer, again and again.

    Raises AccessDeniedError where Google refuses it. Keys of service accounts sign by themselves.
    """
    if credentials.valid or isinstance(credentials, KeyCredentials):
        return
    try:
        credentials.refresh(Request())
    except TransportError:
        return  # Spanner may be reached nevertheless; its own error says so if not
    except RefreshError as error:
        if error.retryable:
            return
        is_other = isinstance(credentials, ImpersonatedCredentials)
        account = credentials.signer_email if is_other else None
        raise AccessDeniedError(explain_refusal(error, account)) from error
    except UNREADABLE as error:
        raise UnavailableError(explain_credentials(error)) from error


def explain_credentials(error: Exception) -> str:
    """Why there are no credentials, and what to do."""
    named = os.environ.get(CREDENTIALS)
    advice = f"{LOG_IN}, or set {EMULATOR_HOST} to use an emulator"
    if named is None:
        if isinstance(error, DefaultCredentialsError) and NONE_FOUND in str(error):
            return f"no Google Cloud credentials were found: {advice}"
        return f"the Application Default Credentials cannot be used ({first_line(error)}): {advice}"
    if not os.path.exists(named):
        why = "which does not exist"
    elif os.path.isdir(named):
        why = "which is a folder"
    else:
        why = f"which has no credentials ({first_line(error)})"
    return (
        f"{CREDENTIALS} names the file {named}, {why}: name a file of credentials, or unset it and"
        f" {advice}"
    )


def explain_refusal(error: RefreshError, account: str | None) -> str:
    """Why Google gave no token, for the service account that was to be impersonated if there is
    one, and what to do."""
    named = os.environ.get(CREDENTIALS)
    where = f"of the file {named} in {CREDENTIALS}" if named else "of this machine or user"
    if account is not None and "impersonated" in str(error):
        return (
            f"the credentials {where} may not act as the service account {account}"
            f" ({read_reason(error)}): grant roles/iam.serviceAccountTokenCreator on it"
        )
    return (
        f"Google refuses the credentials {where}: they have expired or were revoked"
        f" ({first_line(error)}); {LOG_IN}, or name another file"
    )


def read_reason(error: RefreshError) -> str:
    """Why IAM refused a token: google-auth keeps its answer, JSON, behind words of its own."""
    try:
        return str(json.loads(error.args[1])["error"]["message"])
    except (IndexError, KeyError, TypeError, ValueError):
        return first_line(error)


def first_line(error: Exception) -> str:
    """What an error says first; some have more than words."""
    text = str(error.args[0]) if error.args else str(error)
    return text.splitlines()[0] if text else type(error).__name__

"""Errors of object stores: their causes, the rights that are missing, and no secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import TracebackType

from lance_format.errors import LanceError, NotSupportedError, StorageError
from lance_format.object_store.store import ObjectExistsError, ObjectNotFoundError, RefusedError

REDACTED = "*********"
"""Spark's replacement for secrets."""

_MAX_TEXT = 500
_SIGNATURE = re.compile(r"(?i)\b((?:x-amz-(?:signature|credential|security-token)|x-goog-signature|sig)=)[^&\s\"']+")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]+")
_MISSING_BUCKETS = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist", "BucketNotFound")
_RIGHTS = {
    "s3": {
        "read": "s3:GetObject (and s3:ListBucket, without which a missing object looks forbidden)",
        "look up": "s3:GetObject (and s3:ListBucket, without which a missing object looks forbidden)",
        "write": "s3:PutObject (and s3:AbortMultipartUpload for large objects)",
        "create": "s3:PutObject",
        "list": "s3:ListBucket",
        "delete": "s3:DeleteObject",
    },
    "gs": {
        "read": "storage.objects.get",
        "look up": "storage.objects.get",
        "write": "storage.objects.create and storage.objects.delete (a replacement deletes)",
        "create": "storage.objects.create",
        "list": "storage.objects.list",
        "delete": "storage.objects.delete",
    },
    "az": {
        "read": "Storage Blob Data Reader",
        "look up": "Storage Blob Data Reader",
        "write": "Storage Blob Data Contributor",
        "create": "Storage Blob Data Contributor",
        "list": "Storage Blob Data Reader",
        "delete": "Storage Blob Data Contributor",
    },
}
_FOUND_NOWHERE = (
    "no credentials were found in the storage options, the environment{}, or a service of this machine; give "
)
NO_CREDENTIALS = {
    "s3": _FOUND_NOWHERE.format(", a profile of ~/.aws")
    + "aws_access_key_id and aws_secret_access_key, or aws_skip_signature=true for a public bucket",
    "gs": _FOUND_NOWHERE.format(", the file of gcloud")
    + "google_service_account, log in by gcloud auth application-default login, or give google_skip_signature=true for"
    " a public bucket",
    "az": _FOUND_NOWHERE.format("")
    + "azure_storage_account_key or azure_storage_sas_token, azure_use_azure_cli=true after az login, or"
    " azure_skip_signature=true for a public container",
}
"""What to do if the chain of a cloud ends without credentials."""
_METADATA = re.compile(r"/latest/(?:api/token|meta-data/)|/computeMetadata/v1/|/metadata/identity/oauth2/")
_CAUSES = (
    ("InvalidAccessKeyId", "the store does not know the access key; check the credentials"),
    ("SignatureDoesNotMatch", "the secret key does not fit the access key; check the credentials"),
    ("AuthenticationFailed", "the store does not accept the credentials; check the account, its key or the SAS token"),
    ("InvalidResourceName", "the name of the container is not valid: it has lower-case letters, digits and hyphens"),
    ("InvalidBucketName", "the name of the bucket is not valid: it has lower-case letters, digits, hyphens and dots"),
    ("ExpiredToken", "the credentials have expired; give a credential_provider, or use those of the environment"),
    ("RequestTimeTooSkewed", "the clock of this machine is wrong by more than the store allows; set it"),
    ("RequestExpired", "the clock of this machine is wrong by more than the store allows; set it"),
    ("PermanentRedirect", "the bucket is in another region; set the option aws_region"),
    ("redirect without LOCATION", "the bucket is in another region; set the option aws_region"),
    ("AuthorizationHeaderMalformed", "the bucket is in another region; set the option aws_region"),
    ("InvalidHeaderValue", "a credential has a line break or another control character; remove it"),
    ("does not support default_credentials", "no credentials were found; see storage_options"),
    (
        "URL scheme is not allowed",
        "the address is not encrypted; set the storage option allow_http to true, or use https",
    ),
)
_BUSY = re.compile(r"status code: (?:429|503) |SlowDown|ServerBusy")
_SILENT = re.compile(r"performing HEAD [^\n]* status code: 400 ")
"""A refusal without a body, since replies to HEAD have none."""
_REFUSED = re.compile(r"status code: (?:400|401|403|405|411|413) ")
_RETRIES = re.compile(r"after (\d+) retries")
_PROVIDER = re.compile(r"credential provider: (?:\w+Error: )?([^\n]*)")
_BROKEN = (
    "response body",
    "body from response",
    "end of file before message length",
    "connection closed before message",
)
_UNREADABLE = re.compile(r'object with invalid path: (?:Error parsing )?Path "(.*?)"(?:: | contained )', re.DOTALL)
_LACKING = re.compile(r"(\S+) Header missing from response")
_NO_ANSWER = "HTTP error: error sending request"
_DENIED = ("PermissionDenied", "Unauthenticated", " 401 ", " 403 ")


class BrokenReplyError(StorageError):
    """A reply that ended too early."""


class UnavailableError(StorageError):
    """A store that does not answer, or refuses requests for now; the next request would wait as long in vain."""


class UnansweredError(UnavailableError):
    """A request without a reply that obstore has not repeated, as it could have been carried out."""


class Redaction:
    """The secrets of a store, which no message may show.

    Parameters
    ----------
    secrets : sequence of str
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = tuple(sorted({secret for secret in secrets if secret}, key=len, reverse=True))

    def __repr__(self) -> str:
        return f"Redaction({len(self._secrets)} secrets)"

    def apply(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return _BEARER.sub(rf"\1{REDACTED}", _SIGNATURE.sub(rf"\1{REDACTED}", text))


class CloudErrors:
    """Convert errors of obstore to `StorageError`: a context manager.

    A failed check inside obstore is a panic, which is no `Exception`. The original error is not attached, since it may
    show a secret.

    Parameters
    ----------
    action : str
        The attempted action: a key of the table of rights.
    path : str
    provider : str
        `s3`, `gs` or `az`.
    redaction : Redaction
    """

    __slots__ = ("_action", "_path", "_provider", "_redaction")

    def __init__(self, action: str, path: str, provider: str, redaction: Redaction) -> None:
        self._action = action
        self._path = path
        self._provider = provider
        self._redaction = redaction

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(
            error, LanceError | KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError
        ):
            return
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            translated = self._translate(error)
            raise (RefusedError(str(translated)) if self._is_refused(error, translated) else translated) from None

    @staticmethod
    def _is_refused(error: BaseException, translated: LanceError) -> bool:
        """Return whether the store has refused the only request; one before a retry may have been carried out."""
        text = str(error)
        return type(translated) is StorageError and _REFUSED.search(text) is not None and not _RETRIES.search(text)

    def _translate(self, error: BaseException) -> LanceError:
        kind, text = type(error).__name__, str(error)
        failed = f"cannot {self._action} {self._path}"
        if any(mark in text for mark in _MISSING_BUCKETS):
            return StorageError(f"{failed}: the bucket or container does not exist; create it, or check its name")
        if isinstance(error, FileNotFoundError) or kind == "NotFoundError":
            return ObjectNotFoundError(f"{failed}: there is no such object")
        if kind in ("AlreadyExistsError", "PreconditionError"):
            return ObjectExistsError(f"{failed}: it exists already")
        if self._action == "create" and ("NotImplemented" in kind or " 501 " in text or kind == "NotSupportedError"):
            return NotSupportedError(
                f"{failed}: the store refuses to create an object only if it is absent, which commits need"
            )
        provider = _PROVIDER.search(text)
        if provider is not None:
            return StorageError(f"{failed}: there are no credentials: {self._summarize(provider[1])}")
        if _METADATA.search(text):
            return StorageError(f"{failed}: {NO_CREDENTIALS[self._provider]}")
        for code, remedy in _CAUSES:
            if code in text:
                return StorageError(f"{failed}: {remedy}")
        unreadable = _UNREADABLE.search(text)
        if unreadable is not None:
            return StorageError(
                f"{failed}: the bucket has an object {unreadable[1]!r}, and no name may have empty parts, the parts"
                " '.' and '..', or control characters; delete it by other means, or rename it"
            )
        lacking = _LACKING.search(text)
        if lacking is not None:
            return StorageError(
                f"{failed}: the reply has no header {lacking[1]}, which all of these stores send; let proxies and"
                " gateways on the way pass it, or use another store"
            )
        if any(mark in kind or mark in text for mark in _DENIED):
            right = _RIGHTS[self._provider][self._action]
            return StorageError(f"{failed}: access denied; grant these credentials {right} on it, or use others")
        if self._provider == "s3" and _SILENT.search(text):
            return StorageError(
                f"{failed}: the store refuses the request, and gives no reason to a HEAD request, as S3 does if the"
                " credentials have expired; check them, give a credential_provider, or use those of the environment"
                f" ({self._summarize(text)})"
            )
        if _BUSY.search(text):
            retries = _RETRIES.search(text)
            return UnavailableError(
                f"{failed}: the store refuses requests for now, also after {retries[1] if retries else 0} retries;"
                " wait, run fewer tasks at once, or raise client_max_retries and client_retry_timeout"
                f" ({self._summarize(text)})"
            )
        is_broken = any(mark in text for mark in _BROKEN)
        if not is_broken and _NO_ANSWER in text:
            return (UnavailableError if _RETRIES.search(text) else UnansweredError)(
                f"{failed}: the store does not answer; check its address, the network and proxies"
                f" ({self._summarize(text)})"
            )
        return (BrokenReplyError if is_broken else StorageError)(f"{failed}: {self._summarize(text)}")

    def _summarize(self, text: str) -> str:
        brief = " ".join(self._redaction.apply(text.partition("\n\nDebug source")[0]).split())
        return brief if len(brief) <= _MAX_TEXT else f"{brief[:_MAX_TEXT]} …"

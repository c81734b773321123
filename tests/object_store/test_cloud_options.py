"""Options, credentials and secrets of object stores."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lance_format
from lance_format import DatasetNotFoundError, InvalidInputError, LanceError, NotSupportedError, StorageError
from lance_format.object_store import absolute_uri, resolve, uri_path
from lance_format.object_store.cloud_client import _find_region
from lance_format.object_store.cloud_errors import CloudErrors, Redaction
from lance_format.object_store.cloud_options import CloudOptions
from tests.proxies import Fault, Proxy, always
from tests.servers import ObjectServer

SECRET = "s3cr3t-of-the-tests"


@pytest.mark.parametrize(
    ("uri", "path", "again"),
    [
        ("s3://b.c-d/t.lance", "s3://b.c-d/t.lance", "s3://b.c-d/t.lance"),
        ("S3A://bucket/a/b/", "s3://bucket/a/b", "s3://bucket/a/b"),
        ("s3://bucket", "s3://bucket", "s3://bucket"),
        ("s3://bucket/a/./b/../c", "s3://bucket/a/c", "s3://bucket/a/c"),
        ("s3://bucket/a%20b%25/ü%3F", "s3://bucket/a b%/ü?", "s3://bucket/a b%25/ü%3F"),
        ("gs://bucket/t", "gs://bucket/t", "gs://bucket/t"),
        ("az://container/t", "az://container/t", "az://container/t"),
        ("abfss://c/t", "az://c/t", "az://c/t"),
        *(
            (f"{scheme}://c@Account.dfs.core.windows.net/t", path, path)
            for scheme in ("abfs", "abfss")
            for path in ["abfss://c@account.dfs.core.windows.net/t"]
        ),
    ],
)
def test_a_uri_means_one_path(uri: str, path: str, again: str) -> None:
    assert uri_path(uri) == path
    assert absolute_uri(uri) == again
    assert uri_path(again) == path


@pytest.mark.parametrize(
    "uri",
    [
        "s3:/bucket/t",
        "s3://",
        "s3:///t",
        "s3://bucket/../t",
        "s3://bucket//t//u",
        "s3://key:secret@bucket/t",
        "s3://bucket/t?x=1",
        "abfss://c@evil.example.com/t",
        "abfss://c@account.dfs.core.windows.net.evil.example.com/t",
    ],
)
def test_a_uri_that_means_no_place_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        resolve(uri)


def test_options_have_the_names_of_pylance() -> None:
    parsed = CloudOptions.parse(
        "s3",
        {
            "AWS_REGION": "eu-central-1",
            "access_key_id": "AKID",
            "aws_secret_access_key": "hidden",
            "aws_endpoint_url": "https://example.com",
            "client_max_retries": "3",
            "client_retry_timeout": "7",
            "request_timeout": "30 s",
            "headers.x-custom": "value",
            "download_retry_count": "3",
            "azure_storage_account_key": "of another cloud",
            "google_service_account": "of another cloud",
        },
    )
    assert parsed.config == {
        "region": "eu-central-1",
        "access_key_id": "AKID",
        "secret_access_key": "hidden",
        "endpoint": "https://example.com",
    }
    assert parsed.client == {"timeout": "30 s", "default_headers": {"x-custom": "value"}}
    assert parsed.retry["max_retries"] == 3
    assert parsed.retry["retry_timeout"].total_seconds() == 7
    assert CloudOptions.parse("az", {"azure_storage_account_name": "a", "storage_account_key": "k"}).config == {
        "account_name": "a",
        "account_key": "k",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aws_secret_acces_key": SECRET}, "unknown storage option .*did you mean 'aws_secret_access_key'"),
        ({"nonsense": SECRET}, "docs/object_stores.md"),
        ({"aws_region": "a", "region": "b"}, "given twice"),
        ({"client_max_retries": SECRET}, "whole number"),
        ({"aws_endpoint": "http://example.com"}, "allow_http"),
        ({"aws_endpoint": f"{SECRET}@example.com:9000"}, "'example.com:9000'; it must begin with https://"),
        ({"aws_access_key_id": SECRET}, "aws_access_key_id is given without aws_secret_access_key"),
        ({"allow_http": SECRET}, "not valid"),
        ({"credential_provider": "nowhere"}, "module:function"),
        ({"credential_provider": "nowhere.at:all"}, "cannot be imported"),
    ],
)
def test_a_wrong_option_is_refused_without_its_value(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        resolve("s3://bucket/t", {"region": "eu-central-1", **options} if "region" not in options else options)
    assert SECRET not in str(refused.value)


def test_conditional_puts_cannot_be_turned_off() -> None:
    with pytest.raises(NotSupportedError, match="two writers would replace"):
        resolve("s3://bucket/t", {"aws_conditional_put": "disabled"})


def test_an_account_is_named_once() -> None:
    with pytest.raises(InvalidInputError, match="names the account 'one'"):
        resolve("abfss://c@one.dfs.core.windows.net/t", {"azure_storage_account_name": "two"})


def test_stores_are_shared_by_options(s3_server: ObjectServer) -> None:
    one = resolve(f"{s3_server.root}/a", s3_server.options)[0]
    assert resolve(f"{s3_server.root}/b", dict(s3_server.options))[0] is one
    assert resolve(f"{s3_server.root}/b", {**s3_server.options, "aws_secret_access_key": "other"})[0] is not one


def test_no_secret_is_shown(s3_server: ObjectServer) -> None:
    root = s3_server.new_root()
    table = lance_format.write_dataset({"a": [1]}, root, storage_options=s3_server.options)
    store = resolve(root, s3_server.options)[0]
    shown = [repr(table), str(table), repr(table._table), repr(store), repr(table.lance_schema), repr(vars(store))]
    plan = lance_format.plan_write(root, table.schema, mode="append", storage_options=s3_server.options)
    shown += [repr(plan), repr(table.scanner())]
    with pytest.raises(DatasetNotFoundError) as absent:
        lance_format.dataset(f"{root}/absent", storage_options=s3_server.options)
    shown.append(str(absent.value))
    assert not [text for text in shown if SECRET in text]
    for info in store.list_tree(root):
        assert SECRET.encode() not in store.read(info.path, 1 << 20)
    again = pickle.loads(pickle.dumps(table))
    assert again.to_table() == table.to_table()


@pytest.mark.parametrize(
    "text",
    [
        f"Error performing GET https://x/y?sv=1&sig={SECRET}&se=2",
        f"https://x/y?X-Amz-Signature={SECRET}&X-Amz-Security-Token={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"the value {SECRET}",
    ],
)
def test_secrets_are_taken_out_of_errors(text: str) -> None:
    with pytest.raises(StorageError) as failed, CloudErrors("read", "s3://b/k", "s3", Redaction([SECRET])):
        raise ValueError(text)
    assert SECRET not in str(failed.value)
    assert failed.value.__suppress_context__
    assert "s3://b/k" in str(failed.value)


def test_a_store_that_stops_answering_is_one_error(s3_server: ObjectServer) -> None:
    proxy = Proxy(s3_server.endpoint)
    options = {**s3_server.options, "aws_endpoint": proxy.endpoint, "client_max_retries": "1"}

    def use() -> None:
        for uri in (s3_server.new_root(), f"{s3_server.new_root()}/again"):
            with pytest.raises(StorageError, match=f"cannot list {uri}/_versions: the store does not answer") as failed:
                lance_format.dataset(uri, storage_options=options)
            text = str(failed.value)
            assert "check its address" in text
            assert "after 1 retries" in text
            assert "\n" not in text

    with proxy.running(), proxy.failing(always(Fault())):
        use()
    use()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uri", "options", "message"),
    [
        (
            "s3://bucket/t",
            {"aws_endpoint": "http://127.0.0.1:1", "allow_http": "true", "aws_access_key_id": "a"},
            r"s3://bucket: the store does not answer at 127\.0\.0\.1:1 \(connection refused\); .* option aws_endpoint",
        ),
        (
            "gs://bucket/t",
            {"google_base_url": "https://user:pass@nowhere.invalid", "google_skip_signature": "true"},
            r"does not answer at nowhere\.invalid \(no such host\); .* option google_base_url",
        ),
        (
            "az://container/t",
            {"azure_endpoint": "http://127.0.0.1:1", "allow_http": "true", "azure_storage_account_name": "account"},
            r"does not answer at 127\.0\.0\.1:1 .* option azure_storage_endpoint",
        ),
    ],
)
def test_a_store_that_nobody_serves_is_found_out_before_the_retries(
    uri: str, options: dict[str, str], message: str
) -> None:
    """The default is ten retries, which take half a minute."""
    if "aws_access_key_id" in options:
        options = {**options, "aws_secret_access_key": "hidden", "aws_region": "eu-central-1"}
    for _ in range(2):
        with pytest.raises(StorageError, match=f"^cannot reach .*{message}") as failed:
            lance_format.dataset(uri, storage_options=options)
        assert "retries" not in str(failed.value)


def test_a_short_secret_does_not_lengthen_a_message() -> None:
    """Its occurrences in the part that is left out must not hide where that begins."""
    with pytest.raises(StorageError) as failed, CloudErrors("read", "s3://b/k", "s3", Redaction(["e", "b"])):
        raise ValueError("the reply is bad\n\nDebug source: { … }")
    assert str(failed.value).endswith("is *********ad")


class PanicException(BaseException):
    """As obstore raises it."""


def test_a_panic_is_an_error_and_an_interrupt_is_none() -> None:
    with (
        pytest.raises(StorageError, match="cannot read s3://b/k"),
        CloudErrors("read", "s3://b/k", "s3", Redaction([])),
    ):
        raise PanicException("called unwrap")
    with pytest.raises(KeyboardInterrupt), CloudErrors("read", "s3://b/k", "s3", Redaction([])):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, "<Error><Code>AccessDenied</Code></Error>", "access denied; grant these credentials s3:GetObject"),
        (403, "<Error><Code>SignatureDoesNotMatch</Code></Error>", "secret key does not fit"),
        (403, "<Error><Code>InvalidAccessKeyId</Code></Error>", "does not know the access key"),
        (403, "<Error><Code>RequestTimeTooSkewed</Code></Error>", "clock of this machine"),
        (301, "<Error><Code>PermanentRedirect</Code></Error>", "in another region; set the option aws_region"),
        (
            400,
            "<Error><Code>AuthorizationHeaderMalformed</Code></Error>",
            "in another region; set the option aws_region",
        ),
        (400, "<Error><Code>ExpiredToken</Code></Error>", "credentials have expired"),
        (400, "<Error><Code>InvalidBucketName</Code></Error>", "name of the bucket is not valid"),
        (403, "<Error><Code>AuthenticationFailed</Code></Error>", "does not accept the credentials"),
        (404, "<Error><Code>NoSuchBucket</Code></Error>", "the bucket or container does not exist"),
    ],
)
def test_what_is_denied_is_named(s3_server: ObjectServer, status: int, body: str, message: str) -> None:
    proxy = Proxy(s3_server.endpoint)
    with proxy.running(), proxy.failing(always(Fault(status, body))):
        store, root = resolve(s3_server.new_root(), {**s3_server.options, "aws_endpoint": proxy.endpoint})
        with pytest.raises(LanceError, match=f"cannot read {root}/key: .*{message}") as failed:
            store.read(f"{root}/key", 10)
        assert not isinstance(failed.value, FileNotFoundError)


@pytest.mark.parametrize("name", ["aws_access_key_id", "aws_session_token", "headers.x-team"])
def test_line_breaks_in_credentials_are_named(s3_server: ObjectServer, name: str) -> None:
    options = {**s3_server.options, name: f"{SECRET}\n"}
    with pytest.raises(InvalidInputError, match=f"{name} has a line break") as failed:
        resolve(s3_server.new_root(), options)
    assert SECRET not in str(failed.value)


def test_a_line_break_in_keys_that_a_provider_returns_is_named() -> None:
    with (
        pytest.raises(StorageError, match="cannot read s3://b/k: a credential has a line break"),
        CloudErrors("read", "s3://b/k", "s3", Redaction([])),
    ):
        raise PanicException("called `Result::unwrap()` on an `Err` value: InvalidHeaderValue")


@pytest.mark.parametrize("name", ["a//b", "./b", "../b", "a\tb"])
def test_an_object_whose_name_cannot_be_listed_is_named(s3_server: ObjectServer, name: str) -> None:
    root = s3_server.new_root()
    place = f"{root.removeprefix('s3://tables/')}/data/{name}"
    listing = (
        f"<Contents><Key>{place}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
    )
    reply = f"<ListBucketResult><IsTruncated>false</IsTruncated>{listing}</ListBucketResult>"
    proxy = Proxy(s3_server.endpoint)
    with proxy.running(), proxy.failing(always(Fault(200, reply))):
        store, root = resolve(root, {**s3_server.options, "aws_endpoint": proxy.endpoint})
        with pytest.raises(StorageError, match=re.escape(f"{place!r}, and no name may have")):
            list(store.list_tree(root))


def test_a_header_that_replies_lack_is_named(s3_server: ObjectServer) -> None:
    proxy = Proxy(s3_server.endpoint)
    with proxy.running(), proxy.failing(always(Fault(200))):
        store, root = resolve(s3_server.new_root(), {**s3_server.options, "aws_endpoint": proxy.endpoint})
        with pytest.raises(StorageError, match=f"cannot write {root}/key: the reply has no header ETag, .*proxies"):
            store.put(f"{root}/key", b"content")


def test_a_refusal_without_a_body_names_expired_credentials(s3_server: ObjectServer) -> None:
    """S3 answers 400 to HEAD requests with expired credentials, and replies to HEAD have no body with the reason."""
    proxy = Proxy(s3_server.endpoint)
    with proxy.running(), proxy.failing(always(Fault(400), lambda request: request.method == "HEAD")):
        store, root = resolve(s3_server.new_root(), {**s3_server.options, "aws_endpoint": proxy.endpoint})
        with pytest.raises(StorageError, match=f"cannot look up {root}/key: .*if the credentials have expired"):
            store.size(f"{root}/key")


@pytest.mark.parametrize(
    ("cloud", "action", "right"),
    [
        ("s3", "delete", "s3:DeleteObject"),
        ("gs", "read", "storage.objects.get"),
        ("gs", "write", "storage.objects.create and storage.objects.delete"),
        ("gs", "list", "storage.objects.list"),
        ("gs", "delete", "storage.objects.delete"),
        ("az", "read", "Storage Blob Data Reader"),
        ("az", "write", "Storage Blob Data Contributor"),
        ("az", "list", "Storage Blob Data Reader"),
        ("az", "delete", "Storage Blob Data Contributor"),
    ],
)
def test_the_right_that_is_missing_is_named(
    request: pytest.FixtureRequest, cloud: str, action: str, right: str
) -> None:
    server: ObjectServer = request.getfixturevalue({"s3": "s3_server", "gs": "gcs_server", "az": "azure_server"}[cloud])
    proxy = Proxy(server.endpoint)
    address = {"s3": "aws_endpoint", "az": "azure_storage_endpoint"}.get(cloud)
    with proxy.running(), proxy.failing(always(Fault(403, "<Error><Code>Denied</Code></Error>"))):
        options = {**server.options, **({address: proxy.endpoint} if address else {})}
        if not address:
            key = json.loads(options["google_service_account_key"])
            options["google_service_account_key"] = json.dumps({**key, "gcs_base_url": proxy.endpoint})
        store, root = resolve(server.new_root(), options)
        use = {
            "read": lambda: store.read(f"{root}/key", 10),
            "write": lambda: store.put(f"{root}/key", b""),
            "list": lambda: store.list_names(root),
            "delete": lambda: store.delete(f"{root}/key"),
        }[action]
        with pytest.raises(
            StorageError, match=f"cannot {action} {root}.*: access denied; grant these credentials {right}"
        ):
            use()


def provide() -> dict[str, object]:
    """Return credentials that expire at once, and note the call."""
    import datetime
    import os

    with Path(os.environ["CALLS_OF_PROVIDER"]).open("a") as calls:
        calls.write("x")
    expires = datetime.datetime.now(datetime.UTC)
    return {"access_key_id": "AKIDFROMPROVIDER", "secret_access_key": SECRET, "token": None, "expires_at": expires}


def test_a_provider_is_asked_again_when_its_credentials_expire(
    s3_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLS_OF_PROVIDER", str(tmp_path / "calls"))
    proxy = Proxy(s3_server.endpoint)
    options = {name: value for name, value in s3_server.options.items() if "key" not in name}
    options["credential_provider"] = f"{__name__}:provide"
    with proxy.running():
        table = lance_format.write_dataset(
            {"a": [1]}, s3_server.new_root(), storage_options={**options, "aws_endpoint": proxy.endpoint}
        )
        assert lance_format.dataset(table.uri, storage_options=table._table.storage_options).count_rows() == 1
        assert all("Credential=AKIDFROMPROVIDER/" in request.headers["authorization"] for request in proxy.requests)
    assert len((tmp_path / "calls").read_text()) > 1


def test_keys_come_from_the_environment_or_a_profile(
    s3_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = AKIDDEFAULT\naws_secret_access_key = {SECRET}\n"
        f"[other]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "config").write_text("[profile other]\nregion = eu-north-1\n[profile sso]\nsso_session = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    proxy = Proxy(s3_server.endpoint)
    with proxy.running():
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")

        def credential() -> str:
            resolve(f"{s3_server.root}/t")[0].list_names(f"{s3_server.root}/t")
            return proxy.requests.pop().headers["authorization"].partition("Credential=")[2].partition("/s3")[0]

        assert credential().startswith("AKIDDEFAULT/")
        monkeypatch.setenv("AWS_PROFILE", "other")
        assert credential().startswith("AKIDOTHER/")
        assert credential().endswith("/eu-north-1")
        for profile, message in (("absent", "no such profile"), ("sso", "pip install boto3|boto3|profile")):
            monkeypatch.setenv("AWS_PROFILE", profile)
            with pytest.raises(LanceError, match=message):
                credential()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        assert credential().startswith("AKIDENVIRONMENT/")


def test_the_region_of_a_bucket_is_asked_for(s3_server: ObjectServer) -> None:
    proxy = Proxy(s3_server.endpoint)
    rule = always(Fault(403, headers={"x-amz-bucket-region": "ap-south-1"}))
    with proxy.running(), proxy.failing(rule):
        assert _find_region("a-bucket", proxy.endpoint + "/{}") == "ap-south-1"
    assert _find_region("a-bucket", proxy.endpoint + "/{}") == "ap-south-1"
    assert _find_region("another-bucket", proxy.endpoint + "/{}") == "us-east-1"


def _read_in_child(root: str, options: dict[str, str]) -> str:
    try:
        return str(lance_format.dataset(root, storage_options=options).count_rows())
    except StorageError as error:
        return str(error)


@pytest.mark.slow
def test_a_forked_child_is_told_instead_of_waiting_forever(s3_server: ObjectServer) -> None:
    """The parent is a process of its own, since pytest's has threads."""
    root = s3_server.new_root()
    lance_format.write_dataset({"a": [1, 2]}, root, storage_options=s3_server.options)
    program = (
        "import sys, json, multiprocessing\n"
        "from tests.object_store.test_cloud_options import _read_in_child\n"
        "root, options, uses = json.loads(sys.argv[1])\n"
        "if uses: print(_read_in_child(root, options))\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    print(pool.apply(_read_in_child, (root, options)))\n"
    )
    for uses in (False, True):
        argument = json.dumps([root, s3_server.options, uses])
        command = [sys.executable, "-W", "ignore", "-c", program, argument]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
        if uses:
            assert output.startswith("2\nthis process was forked from one that had used an object store")
        else:
            assert output == "2\n"
    assert multiprocessing.get_context("spawn").get_start_method() == "spawn"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(NotSupportedError, match="pip install obstore"):
        resolve("gs://bucket/t", {"google_bearer_token": "x"})

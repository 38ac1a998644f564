"""<dulwich|pygit2> <clone|fetch|push> <url> <directory> <key file> <refspec>...; the token is in CLIENT_TOKEN."""

import os
import sys

library, verb, url, directory, key_file, *refspecs = sys.argv[1:]
token = os.environ["CLIENT_TOKEN"]


def with_dulwich():
    import dulwich.client
    from dulwich import porcelain
    from dulwich.repo import Repo

    over_http = url.startswith("http")
    # It speaks git's protocol itself, over the installed ssh.
    options = "-F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    access = {"username": "git", "password": token} if over_http else {"ssh_command": f"ssh -i {key_file} {options}"}
    if verb == "clone":
        porcelain.clone(url, directory, **access).close()
    elif verb == "push":
        porcelain.push(directory, url, [spec.encode() for spec in refspecs], **access)
    else:
        client, path = dulwich.client.get_transport_and_path(url, **access)
        with Repo(directory) as repo:
            fetched = client.fetch(path, repo)
            for spec in refspecs:
                source, target = spec.lstrip("+").split(":")
                repo.refs[target.encode()] = fetched.refs[source.encode()]


def with_pygit2():
    import pygit2

    class Access(pygit2.RemoteCallbacks):
        def credentials(self, url, username_from_url, allowed_types):
            if allowed_types & pygit2.enums.CredentialType.SSH_KEY:
                return pygit2.Keypair(username_from_url or "git", key_file + ".pub", key_file, "")
            return pygit2.UserPass("git", token)

        def certificate_check(self, certificate, valid, host):
            return True

        def push_update_reference(self, refname, message):
            if message is not None:
                raise RuntimeError(f"{refname}: {message}")

    if verb == "clone":
        pygit2.clone_repository(url, directory, callbacks=Access())
        return
    remote = pygit2.Repository(directory).remotes.create_anonymous(url)
    if verb == "push":
        remote.push(refspecs, callbacks=Access())
    else:
        remote.fetch(refspecs, callbacks=Access())


{"dulwich": with_dulwich, "pygit2": with_pygit2}[library]()

// go-git <clone|fetch|push> <url> <directory> <key file> <refspec>...; the token is in CLIENT_TOKEN.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/plumbing/transport/ssh"
	xssh "golang.org/x/crypto/ssh"
)

func main() {
	if err := run(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(verb, url, directory, keyFile string, specs []string) error {
	var auth transport.AuthMethod = &http.BasicAuth{Username: "git", Password: os.Getenv("CLIENT_TOKEN")}
	if strings.HasPrefix(url, "ssh") {
		keys, err := ssh.NewPublicKeysFromFile("git", keyFile, "")
		if err != nil {
			return err
		}
		keys.HostKeyCallback = xssh.InsecureIgnoreHostKey()
		auth = keys
	}
	if verb == "clone" {
		_, err := git.PlainClone(directory, false, &git.CloneOptions{URL: url, Auth: auth})
		return err
	}
	repository, err := git.PlainOpen(directory)
	if err != nil {
		return err
	}
	remote, err := repository.CreateRemoteAnonymous(&config.RemoteConfig{Name: "anonymous", URLs: []string{url}})
	if err != nil {
		return err
	}
	var refspecs []config.RefSpec
	for _, spec := range specs {
		refspecs = append(refspecs, config.RefSpec(spec))
	}
	if verb == "push" {
		return remote.Push(&git.PushOptions{RemoteName: "anonymous", RefSpecs: refspecs, Auth: auth})
	}
	err = remote.Fetch(&git.FetchOptions{RemoteName: "anonymous", RefSpecs: refspecs, Auth: auth})
	if errors.Is(err, git.NoErrAlreadyUpToDate) {
		return nil
	}
	return err
}

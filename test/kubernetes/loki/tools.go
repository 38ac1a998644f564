//go:build tools

// Loki, for the tests of logs: `go build -o loki github.com/grafana/loki/v3/cmd/loki` here.
package tools

import _ "github.com/grafana/loki/v3/cmd/loki"

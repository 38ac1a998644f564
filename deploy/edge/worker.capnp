# The API at the edge on workerd (docs/edge.md): npm run edge:bundle, then npx workerd serve deploy/edge/worker.capnp
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "api", worker = (
      modules = [(name = "worker", esModule = embed "build/worker.js")],
      compatibilityDate = "2026-06-01",
      compatibilityFlags = ["nodejs_compat"],
      bindings = [
        (name = "PAAS_BASE_URL", fromEnvironment = "PAAS_BASE_URL"),
        (name = "PAAS_APPS_DOMAIN", fromEnvironment = "PAAS_APPS_DOMAIN"),
        (name = "PAAS_DATABASE_URL", fromEnvironment = "PAAS_DATABASE_URL"),
        (name = "PAAS_DATABASE_AUTH", fromEnvironment = "PAAS_DATABASE_AUTH"),
        (name = "PAAS_INTERNAL_URL", fromEnvironment = "PAAS_INTERNAL_URL"),
        (name = "PAAS_SECRET_KEY", fromEnvironment = "PAAS_SECRET_KEY"),
        (name = "PAAS_WEBHOOK_SECRET", fromEnvironment = "PAAS_WEBHOOK_SECRET"),
      ],
      globalOutbound = "network",
    )),
    # The database and the worker may be in a private network.
    (name = "network", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "*:8080", http = (), service = "api")],
);

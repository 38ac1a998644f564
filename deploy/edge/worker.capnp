# The API at the edge on workerd (docs/edge.md): npm run edge:bundle, then npx workerd serve deploy/edge/worker.capnp
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "api", worker = (
      modules = [(name = "worker", esModule = embed "build/worker.js")],
      compatibilityDate = "2026-06-01",
      compatibilityFlags = ["nodejs_compat"],
      # A setting that is not bound has its default, whatever the environment says.
      bindings = [
        (name = "PAAS_ALLOWED_ORIGINS", fromEnvironment = "PAAS_ALLOWED_ORIGINS"),
        (name = "PAAS_APPS_DOMAIN", fromEnvironment = "PAAS_APPS_DOMAIN"),
        (name = "PAAS_BASE_URL", fromEnvironment = "PAAS_BASE_URL"),
        (name = "PAAS_CANARY_STEP_SECONDS", fromEnvironment = "PAAS_CANARY_STEP_SECONDS"),
        (name = "PAAS_DATABASE_AUTH", fromEnvironment = "PAAS_DATABASE_AUTH"),
        (name = "PAAS_DATABASE_URL", fromEnvironment = "PAAS_DATABASE_URL"),
        (name = "PAAS_HTTPS_PORT", fromEnvironment = "PAAS_HTTPS_PORT"),
        (name = "PAAS_HTTP_PORT", fromEnvironment = "PAAS_HTTP_PORT"),
        (name = "PAAS_INTERNAL_URL", fromEnvironment = "PAAS_INTERNAL_URL"),
        (name = "PAAS_KEEP_RELEASES", fromEnvironment = "PAAS_KEEP_RELEASES"),
        (name = "PAAS_LOG_LEVEL", fromEnvironment = "PAAS_LOG_LEVEL"),
        (name = "PAAS_QUOTAS", fromEnvironment = "PAAS_QUOTAS"),
        (name = "PAAS_RELEASE_COMMAND_SECONDS", fromEnvironment = "PAAS_RELEASE_COMMAND_SECONDS"),
        (name = "PAAS_SECRET_KEY", fromEnvironment = "PAAS_SECRET_KEY"),
        (name = "PAAS_SIGNUP", fromEnvironment = "PAAS_SIGNUP"),
        (name = "PAAS_SIGNUPS_PER_ADDRESS", fromEnvironment = "PAAS_SIGNUPS_PER_ADDRESS"),
        (name = "PAAS_SSH_PORT", fromEnvironment = "PAAS_SSH_PORT"),
        (name = "PAAS_TRUSTED_PROXIES", fromEnvironment = "PAAS_TRUSTED_PROXIES"),
        (name = "PAAS_WEBHOOK_SECRET", fromEnvironment = "PAAS_WEBHOOK_SECRET"),
      ],
      globalOutbound = "network",
    )),
    # The database and the worker may be in a private network.
    (name = "network", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "*:8080", http = (), service = "api")],
);

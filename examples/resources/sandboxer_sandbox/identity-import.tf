import {
  to = sandboxer_sandbox.app
  identity = {
    account = "default/default"
    name    = "app"
  }
}

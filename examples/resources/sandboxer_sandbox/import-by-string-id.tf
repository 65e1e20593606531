import {
  to = sandboxer_sandbox.app
  id = "sbx-aaaaaaaaaaaaaaaaaaaa"
}

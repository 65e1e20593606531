# `terraform test` creates the sandbox, runs the tests and destroys everything,
# even if a run fails.

run "price_and_place_are_known_before_anything_exists" {
  command = plan

  assert {
    condition     = sandboxer_sandbox.stack.extension == "ext.local"
    error_message = "The stack should run on this machine."
  }
  assert {
    condition     = sandboxer_sandbox.stack.estimate.maximum != null
    error_message = "The maximum cost is unknown: its confidence is ${sandboxer_sandbox.stack.estimate.confidence}"
  }
}

run "the_stack_works_off_its_jobs" {
  assert {
    condition     = sandboxer_sandbox.stack.state == "ready"
    error_message = "The sandbox is ${sandboxer_sandbox.stack.state}."
  }
  assert {
    condition     = sandboxer_exec.e2e.exit_code == 0
    error_message = "The tests ended with exit code ${sandboxer_exec.e2e.exit_code}."
  }
  assert {
    condition     = timecmp(sandboxer_sandbox.stack.expires_at, timeadd(sandboxer_sandbox.stack.created_at, "15m")) == 0
    error_message = "The sandbox does not end 15 minutes after its creation."
  }
}

run "more_jobs_in_the_same_sandbox" {
  variables {
    jobs   = 20
    before = run.the_stack_works_off_its_jobs.sandbox_id
  }

  assert {
    condition     = sandboxer_sandbox.stack.id == var.before
    error_message = "A different number of jobs must not create another sandbox."
  }
}

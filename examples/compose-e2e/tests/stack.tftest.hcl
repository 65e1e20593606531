# `terraform test` registers the host, creates the stack, runs the tests and
# destroys everything, even if a run fails.

run "price_and_place_are_known_before_anything_exists" {
  command = plan

  assert {
    condition     = sandboxer_sandbox.stack.extension == "ext.compose-ssh"
    error_message = "The stack should run on the host."
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
    condition     = output.verdict == "3 jobs done"
    error_message = "The tests said: ${output.verdict}"
  }
  assert {
    condition     = sandboxer_host.box.facts.docker != null && sandboxer_host.box.facts.compose != null
    error_message = "The host lacks Docker or Compose: ${jsonencode(sandboxer_host.box.facts)}"
  }
  assert {
    condition     = output.compose_project == output.sandbox_id
    error_message = "The Compose project is called ${output.compose_project}."
  }
}

run "more_jobs_in_the_same_stack" {
  variables {
    jobs   = 20
    before = run.the_stack_works_off_its_jobs.sandbox_id
  }

  assert {
    condition     = sandboxer_sandbox.stack.id == var.before
    error_message = "A different number of jobs must not create another stack."
  }
}

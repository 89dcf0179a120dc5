"""Words for people: states, runs, costs, rules and requests as text, for both front ends."""

INSERT INTO tally VALUES (?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, 0),
    nullif(?, 0)) ON CONFLICT DO UPDATE SET runs = runs + excluded.runs,
    timed = coalesce(timed + excluded.timed, timed, excluded.timed),
    slow = coalesce(slow + excluded.slow, slow, excluded.slow),
    squares = coalesce(squares + excluded.squares, squares, excluded.squares),
    waited = coalesce(waited + excluded.waited, waited, excluded.waited),
    wait = coalesce(wait + excluded.wait, wait, excluded.wait)

-- Each function is run by test.c on a thread of its own, one after the other, in one Lua state.
local weir = require "weir"
local camera = camera -- the foreign thread: test.c
local test = {}
local var, queue, kept

function test.a_view_is_no_copy_and_keeps_its_version()
  var = assert(weir.var {1, 2, 3, 4})
  local first = var:read()
  local same = var:read()
  assert(#first == 4 and first[1] == 1 and first[4] == 4 and first[5] == nil)
  assert(camera.data(first) == camera.data(same), "two views of a version show the same memory")
  assert(var:assign {5, 6, 7, 8} == 2)
  local second <close> = var:read()
  assert(first:version() == 1 and first[1] == 1, "the version that is held stays as it is")
  assert(second:version() == 2 and second[1] == 5)
  first:release()
  local good, message = pcall(function() return first[1] end)
  assert(not good and message:find "the view is released")
  assert(not pcall(weir.var, {1, "two"}) and not pcall(weir.var, 7))
  assert(not pcall(getmetatable(first).__index, 7, "version") and not pcall(first.version, var))
end

function test.a_foreign_thread_feeds_the_queue_and_its_cause_arrives()
  queue = assert(weir.queue(8))
  camera.start(queue:address(), 1000, "the camera was unplugged")
  for i = 0, 999 do
    local frame <close> = assert(queue:get())
    assert(frame:version() == 0 and #frame == 4 and frame[1] == i and frame[4] == i)
  end
  local frame, message, status = queue:get()
  assert(frame == nil and message:find "the camera was unplugged" and status == "WEIR_OUT_OF_RANGE")
  assert(camera.stop() == 1000)
  local good, why, name = queue:put {1}
  assert(not good and why:find "the camera was unplugged" and name == "WEIR_CANCELLED")
end

function test.a_wait_ends_at_its_deadline()
  local small = assert(weir.queue(1))
  assert(select(3, small:get(0)) == "WEIR_DEADLINE_EXCEEDED")
  assert(small:put {1} and select(3, small:put({2}, 0.001)) == "WEIR_DEADLINE_EXCEEDED")
  assert(small:close "enough" == nil and small:get()[1] == 1)
  assert(select(2, small:get()):find "enough")
end

function test.views_are_taken_by_this_thread()
  queue = assert(weir.queue(8))
  camera.start(queue:address(), 3, "over")
  assert(camera.show(var:address(), 7))
  kept = {camera.this_thread(), var:read(), queue:get(), queue:get(), queue:get()}
  assert(camera.stop() == 3)
  var:assign {0}
  assert(kept[2][1] == 7 and kept[5][1] == 2)
  assert(camera.alive() == 4, "views keep their memory")
end

function test.and_released_by_this_one()
  local taker = table.remove(kept, 1)
  assert(taker ~= camera.this_thread())
  kept = nil
  collectgarbage()
  assert(camera.alive() == 0 and camera.released_by() == camera.this_thread())
end

return test

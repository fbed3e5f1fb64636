;; The inner loop of hwflow/schedule/throughput/firing.py: fire actors, event by event.
;;
;; An actor is a record of numbers (i32) at these offsets:
;;    0  events a frame
;;    4  events fired in the present frame
;;    8  where the cycles (i64) of the present frame lie; in front of them, those of the frames before
;;   12  where the steps lie from the event before to each event
;;   16  where the records of the arcs into the actor begin, and
;;   20  where they end
;;   24  whether any event came later than it was
;;   28  the actor that the next event waits for in vain, and
;;   32  the event of it that is missed
;; An arc is a record of these:
;;    0  where the events lie that wait, ascending
;;    4  where the events lie that they wait for, ascending; negative ones are of frames before
;;    8  how many there are
;;   12  how many of them are passed: what waits has fired
;;   16  the actor that is waited for
;;   20  for so many cycles
(module
  (memory (export "memory") 1 65536)

  ;; Fire an actor until its next event has to wait, or all have fired. Return how many did.
  (func $fire (param $actor i32) (result i32)
    (local $event i32) (local $events i32) (local $begun i32) (local $cycle_at i32) (local $steps_at i32)
    (local $arc i32) (local $arcs i32) (local $end i32) (local $place i32) (local $source i32) (local $awaited i32)
    (local $cycle i64) (local $least i64)
    ;; What was missed last is still missed: nothing to do.
    (if (i32.le_s (i32.load offset=4 (i32.load offset=28 (local.get $actor))) (i32.load offset=32 (local.get $actor)))
      (then (return (i32.const 0))))
    (local.set $events (i32.load (local.get $actor)))
    (local.set $event (i32.load offset=4 (local.get $actor)))
    (local.set $begun (local.get $event))
    (local.set $cycle_at
      (i32.add (i32.load offset=8 (local.get $actor)) (i32.shl (local.get $event) (i32.const 3))))
    (local.set $steps_at
      (i32.add (i32.load offset=12 (local.get $actor)) (i32.shl (local.get $event) (i32.const 2))))
    (local.set $arcs (i32.load offset=16 (local.get $actor)))
    (local.set $end (i32.load offset=20 (local.get $actor)))
    (block $waits
      (loop $next_event
        (if (i32.eq (local.get $event) (local.get $events))
          (then
            (i32.store offset=32 (local.get $actor) (i32.const 0x7fffffff))
            (br $waits)))
        ;; The event before was so many steps ago at the least,
        (local.set $cycle
          (i64.add (i64.load (i32.sub (local.get $cycle_at) (i32.const 8))) (i64.load32_s (local.get $steps_at))))
        ;; and all that the arcs say has fired, so long ago.
        (local.set $arc (local.get $arcs))
        (block $all_passed
          (loop $next_arc
            (br_if $all_passed (i32.eq (local.get $arc) (local.get $end)))
            (local.set $place (i32.load offset=12 (local.get $arc)))
            (if (i32.lt_s (local.get $place) (i32.load offset=8 (local.get $arc)))
              (then
                (local.set $place (i32.shl (local.get $place) (i32.const 2)))
                (if
                  (i32.eq
                    (i32.load (i32.add (i32.load (local.get $arc)) (local.get $place)))
                    (local.get $event))
                  (then
                    (local.set $source (i32.load offset=16 (local.get $arc)))
                    (local.set $awaited
                      (i32.load (i32.add (i32.load offset=4 (local.get $arc)) (local.get $place))))
                    (if (i32.ge_s (local.get $awaited) (i32.load offset=4 (local.get $source)))
                      (then
                        (i32.store offset=28 (local.get $actor) (local.get $source))
                        (i32.store offset=32 (local.get $actor) (local.get $awaited))
                        (br $waits)))
                    (local.set $least
                      (i64.add
                        (i64.load
                          (i32.add
                            (i32.load offset=8 (local.get $source))
                            (i32.shl (local.get $awaited) (i32.const 3))))
                        (i64.load32_s offset=20 (local.get $arc))))
                    (if (i64.gt_s (local.get $least) (local.get $cycle))
                      (then (local.set $cycle (local.get $least))))))))
            (local.set $arc (i32.add (local.get $arc) (i32.const 24)))
            (br $next_arc)))
        ;; It fires: what led to it is passed.
        (local.set $arc (local.get $arcs))
        (block $all_passed
          (loop $next_arc
            (br_if $all_passed (i32.eq (local.get $arc) (local.get $end)))
            (local.set $place (i32.load offset=12 (local.get $arc)))
            (if (i32.lt_s (local.get $place) (i32.load offset=8 (local.get $arc)))
              (then
                (if
                  (i32.eq
                    (i32.load (i32.add (i32.load (local.get $arc)) (i32.shl (local.get $place) (i32.const 2))))
                    (local.get $event))
                  (then (i32.store offset=12 (local.get $arc) (i32.add (local.get $place) (i32.const 1)))))))
            (local.set $arc (i32.add (local.get $arc) (i32.const 24)))
            (br $next_arc)))
        (if (i64.gt_s (local.get $cycle) (i64.load (local.get $cycle_at)))
          (then
            (i64.store (local.get $cycle_at) (local.get $cycle))
            (i32.store offset=24 (local.get $actor) (i32.const 1))))
        (local.set $cycle_at (i32.add (local.get $cycle_at) (i32.const 8)))
        (local.set $steps_at (i32.add (local.get $steps_at) (i32.const 4)))
        (local.set $event (i32.add (local.get $event) (i32.const 1)))
        (i32.store offset=4 (local.get $actor) (local.get $event))
        (br $next_event)))
    (i32.sub (local.get $event) (local.get $begun)))

  ;; Fire actors in turns, none of whose events of the present frame has fired, until none of them can go on: those
  ;; whose records are listed from 4 on; how many they are is at 0. Instead of each is listed in the end what became of
  ;; it: 1 if an event came later than it was, 2 if an event waits in vain, 3 if both; all its events count as fired.
  (func (export "fire_listed")
    (local $listed i32) (local $end i32) (local $fired i32) (local $actor i32) (local $arc i32)
    (local.set $end (i32.add (i32.const 4) (i32.shl (i32.load (i32.const 0)) (i32.const 2))))
    (local.set $listed (i32.const 4))
    (block $all
      (loop $next_actor
        (br_if $all (i32.eq (local.get $listed) (local.get $end)))
        (local.set $actor (i32.load (local.get $listed)))
        (i32.store offset=4 (local.get $actor) (i32.const 0))
        (i32.store offset=24 (local.get $actor) (i32.const 0))
        (i32.store offset=32 (local.get $actor) (i32.const -1))
        (local.set $arc (i32.load offset=16 (local.get $actor)))
        (block $all_arcs
          (loop $next_arc
            (br_if $all_arcs (i32.eq (local.get $arc) (i32.load offset=20 (local.get $actor))))
            (i32.store offset=12 (local.get $arc) (i32.const 0))
            (local.set $arc (i32.add (local.get $arc) (i32.const 24)))
            (br $next_arc)))
        (local.set $listed (i32.add (local.get $listed) (i32.const 4)))
        (br $next_actor)))
    (loop $next_turn
      (local.set $fired (i32.const 0))
      (local.set $listed (i32.const 4))
      (block $all
        (loop $next_actor
          (br_if $all (i32.eq (local.get $listed) (local.get $end)))
          (local.set $fired (i32.add (local.get $fired) (call $fire (i32.load (local.get $listed)))))
          (local.set $listed (i32.add (local.get $listed) (i32.const 4)))
          (br $next_actor)))
      (br_if $next_turn (local.get $fired)))
    (local.set $listed (i32.const 4))
    (block $all
      (loop $next_actor
        (br_if $all (i32.eq (local.get $listed) (local.get $end)))
        (local.set $actor (i32.load (local.get $listed)))
        (i32.store (local.get $listed)
          (i32.add
            (i32.load offset=24 (local.get $actor))
            (i32.shl
              (i32.lt_s (i32.load offset=4 (local.get $actor)) (i32.load (local.get $actor)))
              (i32.const 1))))
        (i32.store offset=4 (local.get $actor) (i32.load (local.get $actor)))
        (local.set $listed (i32.add (local.get $listed) (i32.const 4)))
        (br $next_actor))))
)

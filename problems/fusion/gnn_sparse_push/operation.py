"""Pairs of an id and a value to the rank id mod world, in the order of (source, place)."""
import torch
import torch.distributed as dist


def operation(count, ids, values, out_ids, out_values, received) -> None:
    """ids: [n] int64, all from 0 on here; values: [n, width] int32; received: [world] int32."""
    world, pairs = dist.get_world_size(), int(count)
    owner = ids[:pairs] % world
    order = torch.argsort(owner, stable=True)
    sent = torch.bincount(owner, minlength=world).to(torch.int32)
    dist.all_to_all_single(received, sent)
    sent, came = sent.tolist(), received.tolist()
    dist.all_to_all_single(out_ids[: sum(came)], ids[order], came, sent)
    dist.all_to_all_single(out_values[: sum(came)], values[order], came, sent)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for n, quads in ((256, 4), (2048, 8)):
        count = torch.randint(0, n + 1, (1,), dtype=torch.int32, device="cuda")
        ids = torch.randint(0, 2**62, (n,), dtype=torch.int64, device="cuda")
        values = torch.randint(-(2**31), 2**31, (n, 4 * quads), dtype=torch.int32, device="cuda")
        out_ids = torch.empty(world * n, dtype=torch.int64, device="cuda")
        out_values = torch.empty(world * n, 4 * quads, dtype=torch.int32, device="cuda")
        received = torch.empty(world, dtype=torch.int32, device="cuda")
        operation(count, ids, values, out_ids, out_values, received)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

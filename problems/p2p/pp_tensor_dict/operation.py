"""A dictionary of ragged tensors goes to the next rank: sizes first, then all entries at once."""
import torch
import torch.distributed as dist


def operation(sizes, inp, got_sizes, out) -> None:
    """sizes, got_sizes: [tensors] int32; inp: [room], out: [room + 4 * tensors] int32."""
    rank, world = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % world, (rank - 1) % world

    def exchange(sent, received) -> None:
        ops = [dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, received, before)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    exchange(sizes, got_sizes)
    packed = torch.empty_like(inp)
    exchange(inp, packed)  # equal lengths on all ranks: words behind the entries travel, too
    start = begin = 0
    for size in got_sizes.tolist():
        out[begin : begin + size] = packed[start : start + size]
        start += size
        begin += -(-size // 4) * 4


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for tensors, room in ((8, 4096), (24, 49152)):
        sizes = torch.randint(0, room // tensors, (tensors,), dtype=torch.int32, device="cuda")
        inp = torch.randint(0, 2**31, (room,), dtype=torch.int32, device="cuda")
        out = torch.empty(room + 4 * tensors, dtype=torch.int32, device="cuda")
        operation(sizes, inp, torch.empty_like(sizes), out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

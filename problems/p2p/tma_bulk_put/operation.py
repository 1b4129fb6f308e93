"""Every rank stamps its pages of 512 words and sends them to the next rank."""
import torch
import torch.distributed as dist


def operation(inp, stamps, out) -> None:
    """inp, out: [n] int32; stamps: [ceil(n / 512)] int32. Sums keep their low 32 bits."""
    rank, world = dist.get_rank(), dist.get_world_size()
    stamped = inp.clone()
    stamped[::512] += stamps
    ops = [
        dist.P2POp(dist.isend, stamped, (rank + 1) % world),
        dist.P2POp(dist.irecv, out, (rank - 1) % world),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (16384, 393216):
        shapes = ((n,), (-(-n // 512),))
        inp, stamps = (
            torch.randint(-(2**31), 2**31, s, dtype=torch.int32, device="cuda") for s in shapes
        )
        operation(inp, stamps, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

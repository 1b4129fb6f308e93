"""Every rank sends its message to the next one and receives that of the one before."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    work = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, inp, (rank + 1) % world),
            dist.P2POp(dist.irecv, out, (rank - 1) % world),
        ]
    )
    for request in work:
        request.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (1024, 65536, 262144):
        inp = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Every rank copies a short record out of each slot of the next rank to its own slots."""
import torch
import torch.distributed as dist


def operation(
    inp: torch.Tensor, start: torch.Tensor, to: torch.Tensor, length: torch.Tensor, out: torch.Tensor
) -> None:
    """inp, out: [n, 128] bytes; start, to, length: [n]. Other bytes of out stay as they are."""
    rank, world = dist.get_rank(), dist.get_world_size()
    slots = torch.empty_like(inp)
    work = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, inp, (rank - 1) % world),
            dist.P2POp(dist.irecv, slots, (rank + 1) % world),
        ]
    )
    for request in work:
        request.wait()
    place = torch.arange(128, device=inp.device)[None, :] - to.long()[:, None]
    source = (place + start.long()[:, None]).clamp(0, 127)
    wanted = (place >= 0) & (place < length.long()[:, None])
    out.copy_(torch.where(wanted, slots.gather(1, source), out))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (128, 1024):
        inp = torch.randint(0, 256, (n, 128), dtype=torch.uint8, device="cuda")
        lists = [torch.randint(0, limit, (n,), dtype=torch.uint8, device="cuda") for limit in (64, 64, 66)]
        operation(inp, *lists, torch.zeros_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

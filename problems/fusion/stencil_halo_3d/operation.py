"""Seven-point stencil on a box that is spread over a torus of ranks."""
import torch
import torch.distributed as dist


def operation(u: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    rank, world = dist.get_rank(), dist.get_world_size()
    pz, py = 2 if world == 8 else 1, 2 if world > 2 and world % 2 == 0 else 1
    grid = (pz, py, world // (py * pz))  # as the axes of u: z, y, x
    place = (rank // (grid[1] * grid[2]), rank // grid[2] % grid[1], rank % grid[2])
    v = c[0] * u
    for axis, coefficients in ((2, c[1:3]), (1, c[3:5]), (0, c[5:7])):
        n, parts = u.shape[axis], grid[axis]
        first, last = u.narrow(axis, 0, 1).contiguous(), u.narrow(axis, n - 1, 1).contiguous()
        before, after = torch.empty_like(last), torch.empty_like(first)
        if parts == 1:
            before, after = last, first
        else:
            step = (grid[1] * grid[2], grid[2], 1)[axis]
            low = rank + ((place[axis] - 1) % parts - place[axis]) * step
            high = rank + ((place[axis] + 1) % parts - place[axis]) * step
            ops = [dist.P2POp(dist.isend, first, low), dist.P2POp(dist.irecv, after, high)]
            ops += [dist.P2POp(dist.isend, last, high), dist.P2POp(dist.irecv, before, low)]
            for work in dist.batch_isend_irecv(ops):
                work.wait()
        padded = torch.cat([before, u, after], dim=axis)
        v = v + coefficients[0] * padded.narrow(axis, 0, n) + coefficients[1] * padded.narrow(axis, 2, n)
    return v


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for nx, ny, nz in ((8, 8, 8), (16, 16, 16)):
        operation(torch.randn(nz, ny, nx, device="cuda"), torch.randn(7, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
